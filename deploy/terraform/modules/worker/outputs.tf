output "service_name" {
  value       = aws_ecs_service.this.name
  description = "The ECS service."
}

output "task_definition_arn" {
  value       = aws_ecs_task_definition.this.arn
  description = "What its tasks are made of."
}

output "migrate" {
  description = "What a deployment runs before it changes the service: the task, and the network it runs in."
  value = {
    task_definition_arn = aws_ecs_task_definition.migrate.arn
    network = {
      awsvpcConfiguration = {
        subnets        = var.subnet_ids
        securityGroups = [aws_security_group.this.id]
        assignPublicIp = "DISABLED"
      }
    }
  }
}

output "security_group_id" {
  value       = aws_security_group.this.id
  description = "What the database lets in."
}

output "log_group_name" {
  value       = aws_cloudwatch_log_group.this.name
  description = "Where its log is."
}
