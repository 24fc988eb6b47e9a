# One worker as an ECS service: no load balancer, nothing listens for anybody but the metrics scraper.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.0"
    }
  }
}

locals {
  full_name = "${var.environment}-${var.name}"

  environment = merge(
    {
      LANEWAY_LANE       = var.lane
      LANEWAY_LOG_FORMAT = "json"
    },
    var.settings,
  )
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/laneway/${var.environment}/${var.name}"
  retention_in_days = var.log_retention_days
}

resource "aws_security_group" "this" {
  name        = local.full_name
  description = "The worker ${var.name}: out to its database and what its handlers call; in from the metrics scraper alone."
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_egress_rule" "all" {
  security_group_id = aws_security_group.this.id
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

resource "aws_vpc_security_group_ingress_rule" "metrics" {
  count = var.scraper_security_group_id == null ? 0 : 1

  security_group_id            = aws_security_group.this.id
  referenced_security_group_id = var.scraper_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 9464
  to_port                      = 9464
}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["ecs-tasks.amazonaws.com"]
    }
  }
}

# What starts the task: pulls the image, writes its log, reads its secrets.
resource "aws_iam_role" "execution" {
  name               = "${local.full_name}-execution"
  assume_role_policy = data.aws_iam_policy_document.assume.json
}

resource "aws_iam_role_policy_attachment" "execution" {
  role       = aws_iam_role.execution.name
  policy_arn = "arn:aws:iam::aws:policy/service-role/AmazonECSTaskExecutionRolePolicy"
}

data "aws_iam_policy_document" "secrets" {
  statement {
    actions   = ["secretsmanager:GetSecretValue"]
    resources = distinct([for arn in concat(values(var.secrets), [var.migrate_database_url_secret]) : join(":", slice(split(":", arn), 0, 7))])
  }
}

resource "aws_iam_role_policy" "secrets" {
  name   = "secrets"
  role   = aws_iam_role.execution.id
  policy = data.aws_iam_policy_document.secrets.json
}

# What the worker itself may do: nothing, until a handler needs it.
resource "aws_iam_role" "task" {
  name               = "${local.full_name}-task"
  assume_role_policy = data.aws_iam_policy_document.assume.json
}

resource "aws_ecs_task_definition" "this" {
  family                   = local.full_name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory_mib
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.task.arn

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = "X86_64"
  }

  container_definitions = jsonencode([
    {
      name                   = "worker"
      image                  = "${var.repository_url}@${var.image_digest}"
      essential              = true
      readonlyRootFilesystem = true
      user                   = "65532:65532"
      stopTimeout            = var.stop_timeout_seconds
      portMappings           = [{ containerPort = 9464, protocol = "tcp" }]
      environment            = [for name in sort(keys(local.environment)) : { name = name, value = local.environment[name] }]
      secrets                = [for name in sort(keys(var.secrets)) : { name = name, valueFrom = var.secrets[name] }]
      linuxParameters        = { capabilities = { drop = ["ALL"] } }
      # Whether it answers, no more: ECS ends a task that fails this, and a database that is away is not mended by that.
      healthCheck = {
        command     = ["CMD", "/usr/local/bin/worker", "check", "--live"]
        interval    = 10
        timeout     = 5
        retries     = 10
        startPeriod = 60
      }
      logConfiguration = {
        logDriver = "awslogs"
        options = {
          "awslogs-group"         = aws_cloudwatch_log_group.this.name
          "awslogs-region"        = var.region
          "awslogs-stream-prefix" = var.name
          "mode"                  = "non-blocking"
        }
      }
    },
  ])
}

resource "aws_ecs_service" "this" {
  name            = var.name
  cluster         = var.cluster_arn
  task_definition = aws_ecs_task_definition.this.arn
  desired_count   = var.desired_count
  launch_type     = "FARGATE"

  # Never more than the desired count: each worker opens its own connections. Of two one stays while the other is replaced.
  deployment_maximum_percent         = 100
  deployment_minimum_healthy_percent = var.desired_count > 1 ? 50 : 0

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  network_configuration {
    subnets          = var.subnet_ids
    security_groups  = [aws_security_group.this.id]
    assign_public_ip = false
  }

  lifecycle {
    # The autoscaler's to set, once it is on. Terraform cannot ignore it only then.
    ignore_changes = [desired_count]
  }
}

resource "aws_appautoscaling_target" "this" {
  count = var.autoscaling_enabled ? 1 : 0

  service_namespace  = "ecs"
  scalable_dimension = "ecs:service:DesiredCount"
  resource_id        = "service/${var.cluster_name}/${aws_ecs_service.this.name}"
  min_capacity       = var.desired_count
  max_capacity       = var.maximum_count
}

# By how long work waits, not by the processor: a worker that waits for others is slow at no load.
resource "aws_appautoscaling_policy" "oldest_age" {
  count = var.autoscaling_enabled ? 1 : 0

  name               = "${local.full_name}-oldest-age"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.this[0].service_namespace
  scalable_dimension = aws_appautoscaling_target.this[0].scalable_dimension
  resource_id        = aws_appautoscaling_target.this[0].resource_id

  target_tracking_scaling_policy_configuration {
    target_value       = var.oldest_age_target_seconds
    scale_in_cooldown  = 300
    scale_out_cooldown = 60

    customized_metric_specification {
      namespace   = var.metrics_namespace
      metric_name = "laneway_queue_oldest_age_seconds"
      statistic   = "Maximum"

      dimensions {
        name  = "Environment"
        value = var.environment
      }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "below_desired" {
  alarm_name          = "${local.full_name}-running-below-desired"
  alarm_description   = "Fewer tasks of ${var.name} run than are desired. Runbook: deploy/runbook.md#lanewaynoliveworker"
  comparison_operator = "GreaterThanThreshold"
  evaluation_periods  = 5
  threshold           = 0
  treat_missing_data  = "breaching"
  alarm_actions       = [var.alarm_topic_arn]
  ok_actions          = [var.alarm_topic_arn]

  metric_query {
    id          = "missing"
    expression  = "desired - running"
    label       = "Tasks that are missing"
    return_data = true
  }

  dynamic "metric_query" {
    for_each = { desired = "DesiredTaskCount", running = "RunningTaskCount" }

    content {
      id = metric_query.key

      metric {
        namespace   = "ECS/ContainerInsights"
        metric_name = metric_query.value
        period      = 60
        stat        = "Average"
        dimensions = {
          ClusterName = var.cluster_name
          ServiceName = aws_ecs_service.this.name
        }
      }
    }
  }
}

# Each build brings its own migrations; a deployment runs this task to its end before it changes the service.
resource "aws_ecs_task_definition" "migrate" {
  family                   = "${local.full_name}-migrate"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory_mib
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.task.arn

  container_definitions = jsonencode([
    {
      name                   = "migrate"
      image                  = "${var.repository_url}@${var.image_digest}"
      essential              = true
      readonlyRootFilesystem = true
      user                   = "65532:65532"
      command                = ["migrate", "up"]
      secrets                = [{ name = "LANEWAY_MIGRATE_DATABASE_URL", valueFrom = var.migrate_database_url_secret }]
      logConfiguration = {
        logDriver = "awslogs"
        options = {
          "awslogs-group"         = aws_cloudwatch_log_group.this.name
          "awslogs-region"        = var.region
          "awslogs-stream-prefix" = "${var.name}-migrate"
        }
      }
    },
  ])
}
