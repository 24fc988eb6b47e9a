# Staging: where it runs. Each worker is a file of its own, worker_<name>.tf.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.0"
    }
  }

  # Bucket, key and region are given by: terraform init -backend-config=backend.hcl
  backend "s3" {
    use_lockfile = true
    encrypt      = true
  }
}

provider "aws" {
  region = var.region

  default_tags {
    tags = {
      Project     = "laneway"
      Environment = local.environment
    }
  }
}

data "aws_caller_identity" "this" {}

locals {
  environment = "staging"
  registry    = "${data.aws_caller_identity.this.account_id}.dkr.ecr.${var.region}.amazonaws.com"

  # What every worker of this environment has in common.
  worker = {
    environment                 = local.environment
    region                      = var.region
    cluster_arn                 = aws_ecs_cluster.this.arn
    cluster_name                = aws_ecs_cluster.this.name
    vpc_id                      = var.vpc_id
    subnet_ids                  = var.subnet_ids
    scraper_security_group_id   = var.scraper_security_group_id
    alarm_topic_arn             = aws_sns_topic.alarms.arn
    migrate_database_url_secret = var.database_secrets.migrate
    database_secrets = {
      LANEWAY_DATABASE_URL        = var.database_secrets.runtime
      LANEWAY_SYSTEM_DATABASE_URL = var.database_secrets.system
    }
  }
}

resource "aws_ecs_cluster" "this" {
  name = "laneway-${local.environment}"

  # The running-below-desired alarm reads its metrics.
  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

resource "aws_sns_topic" "alarms" {
  name = "laneway-${local.environment}-alarms"
}

resource "aws_sns_topic_subscription" "alarms" {
  for_each = var.alarm_emails

  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = each.value
}
