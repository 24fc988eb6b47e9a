# Generated: deno task docs. Change tools/deploy instead; what differs between workers is given by variables.

module "maintenance" {
  source = "../../modules/worker"

  name           = "maintenance"
  lane           = "default"
  repository_url = "${local.registry}/laneway/maintenance"
  image_digest   = var.image_digests["maintenance"]

  secrets  = merge(local.worker.database_secrets, lookup(var.worker_secrets, "maintenance", {}))
  settings = lookup(var.worker_settings, "maintenance", {})

  cpu           = try(var.worker_sizes["maintenance"].cpu, null)
  memory_mib    = try(var.worker_sizes["maintenance"].memory_mib, null)
  desired_count = coalesce(try(var.worker_sizes["maintenance"].desired_count, null), var.desired_count)
  maximum_count = try(var.worker_sizes["maintenance"].maximum_count, null)

  autoscaling_enabled         = var.autoscaling_enabled
  environment                 = local.worker.environment
  region                      = local.worker.region
  cluster_arn                 = local.worker.cluster_arn
  cluster_name                = local.worker.cluster_name
  vpc_id                      = local.worker.vpc_id
  subnet_ids                  = local.worker.subnet_ids
  scraper_security_group_id   = local.worker.scraper_security_group_id
  alarm_topic_arn             = local.worker.alarm_topic_arn
  migrate_database_url_secret = local.worker.migrate_database_url_secret
}

# Of the migrations alone, so that it is known before there is a service.
output "maintenance_migrate" {
  value       = module.maintenance.migrate
  description = "What a deployment runs before it changes the maintenance."
}

# What is to run when a deployment has ended; a deployment that was rolled back runs another one.
output "maintenance_task_definition" {
  value       = module.maintenance.task_definition_arn
  description = "The task definition of the maintenance."
}
