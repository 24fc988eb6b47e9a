/**
 * A worker in Terraform: one file in each environment, one for its image repository, and no edit of another.
 *
 * @module
 */
import type { DeployWorker } from "./deploy_worker.ts";

/** The environments. */
export const ENVIRONMENTS: readonly string[] = ["staging", "production"];

const GENERATED =
  "# Generated: deno task docs. Change tools/deploy instead; what differs between workers is given by variables.\n";

/** `invoice-mailer` as `invoice_mailer`, as Terraform's names are. */
export function terraformName(name: string): string {
  return name.replaceAll("-", "_");
}

/** An environment's instance of the worker's module. */
export function terraformWorker({ name, lane }: DeployWorker): string {
  const module = terraformName(name);
  return `${GENERATED}
module "${module}" {
  source = "../../modules/worker"

  name           = "${name}"
  lane           = "${lane}"
  repository_url = "\${local.registry}/laneway/${name}"
  image_digest   = var.image_digests["${name}"]

  secrets  = merge(local.worker.database_secrets, lookup(var.worker_secrets, "${name}", {}))
  settings = lookup(var.worker_settings, "${name}", {})

  cpu           = try(var.worker_sizes["${name}"].cpu, null)
  memory_mib    = try(var.worker_sizes["${name}"].memory_mib, null)
  desired_count = coalesce(try(var.worker_sizes["${name}"].desired_count, null), var.desired_count)
  maximum_count = try(var.worker_sizes["${name}"].maximum_count, null)

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
output "${module}_migrate" {
  value       = module.${module}.migrate
  description = "What a deployment runs before it changes the ${name}."
}

# What is to run when a deployment has ended; a deployment that was rolled back runs another one.
output "${module}_task_definition" {
  value       = module.${module}.task_definition_arn
  description = "The task definition of the ${name}."
}
`;
}

/** The worker's image repository, a resource of the account. */
export function terraformRepository({ name }: DeployWorker): string {
  const resource = terraformName(name);
  return `${GENERATED}
resource "aws_ecr_repository" "${resource}" {
  name                 = "laneway/${name}"
  image_tag_mutability = "IMMUTABLE"

  image_scanning_configuration {
    scan_on_push = true
  }
}

# What a rule matches, no later one expires: an image that was ever promoted stays, however many were built since.
resource "aws_ecr_lifecycle_policy" "${resource}" {
  repository = aws_ecr_repository.${resource}.name

  policy = jsonencode({
    rules = [
      {
        rulePriority = 1
        description  = "What production ran, runs or may be rolled back to"
        selection = {
          tagStatus     = "tagged"
          tagPrefixList = ["release-"]
          countType     = "imageCountMoreThan"
          countNumber   = 1000
        }
        action = { type = "expire" }
      },
      {
        rulePriority = 2
        description  = "Commits' images, but for the last hundred"
        selection = {
          tagStatus     = "tagged"
          tagPrefixList = ["commit-"]
          countType     = "imageCountMoreThan"
          countNumber   = 100
        }
        action = { type = "expire" }
      },
    ]
  })
}

# Whoever promotes out of this account pulls from here.
resource "aws_ecr_repository_policy" "${resource}" {
  count = length(var.promoted_to_accounts) == 0 ? 0 : 1

  repository = aws_ecr_repository.${resource}.name
  policy     = data.aws_iam_policy_document.promoted.json
}
`;
}
