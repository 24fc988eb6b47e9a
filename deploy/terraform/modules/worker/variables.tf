variable "name" {
  type        = string
  description = "The worker: its folder under workers/, its image, its service."

  validation {
    condition     = can(regex("^[a-z][a-z0-9]*(-[a-z0-9]+)*$", var.name)) && length(var.name) <= 40
    error_message = "Lower-case words with dashes between them, at most 40 characters."
  }
}

variable "environment" {
  type        = string
  description = "staging, production."
}

variable "region" {
  type        = string
  description = "Where it runs."
}

variable "lane" {
  type        = string
  description = "The lane it serves."
}

variable "repository_url" {
  type        = string
  description = "The worker's image repository."
}

variable "image_digest" {
  type        = string
  description = "Which image of it, as its deployment record says: sha256:…"

  validation {
    condition     = can(regex("^sha256:[0-9a-f]{64}$", var.image_digest))
    error_message = "A digest, sha256: and 64 hexadecimal digits; a tag would let the same plan run another image."
  }
}

variable "settings" {
  type        = map(string)
  default     = {}
  description = "Variables of the worker that are no secrets, by their names: LANEWAY_CAPACITY, LANEWAY_LEASE, …"

  validation {
    condition     = alltrue([for name in keys(var.settings) : !can(regex("DATABASE_URL|SECRET|_KEY$|TOKEN", name))])
    error_message = "What holds a secret belongs into secrets: it would stand in the state and in the task's definition."
  }
}

variable "secrets" {
  type        = map(string)
  description = "Variables of the worker that are secrets, each with the ARN of its secret."

  validation {
    condition     = alltrue([for name in ["LANEWAY_DATABASE_URL", "LANEWAY_SYSTEM_DATABASE_URL"] : contains(keys(var.secrets), name)])
    error_message = "LANEWAY_DATABASE_URL and LANEWAY_SYSTEM_DATABASE_URL are needed."
  }
}

variable "migrate_database_url_secret" {
  type        = string
  description = "The ARN of the secret that holds LANEWAY_MIGRATE_DATABASE_URL, the owner login; the migrations' task alone has it."
}

variable "cluster_arn" {
  type        = string
  description = "The ECS cluster."
}

variable "cluster_name" {
  type        = string
  description = "Its name; container insights must be on for the alarm."
}

variable "vpc_id" {
  type        = string
  description = "The network it runs in."
}

variable "subnet_ids" {
  type        = list(string)
  description = "Private subnets of it, with a way out."
}

variable "scraper_security_group_id" {
  type        = string
  default     = null
  description = "Who may scrape its metrics; null is nobody."
}

variable "alarm_topic_arn" {
  type        = string
  description = "The environment's alarm topic."
}

variable "desired_count" {
  type        = number
  default     = 2
  description = "How many run when the service is made; the fewest, once autoscaling is on. Without it, later: aws ecs update-service --desired-count."

  validation {
    condition     = var.desired_count >= 1
    error_message = "At least one: work waits, else."
  }
}

variable "maximum_count" {
  type        = number
  default     = 10
  nullable    = false
  description = "The most that autoscaling starts. The database serves each one's pools: 14 connections by default."
}

variable "autoscaling_enabled" {
  type        = bool
  default     = false
  description = "Whether the count follows the age of the oldest item."
}

variable "oldest_age_target_seconds" {
  type        = number
  default     = 60
  description = "How long the oldest item may have waited."
}

variable "metrics_namespace" {
  type        = string
  default     = "Laneway"
  description = "Where the scraper puts laneway_queue_oldest_age_seconds in CloudWatch, with the dimension Environment."
}

variable "cpu" {
  type        = number
  default     = 256
  nullable    = false
  description = "CPU units."
}

variable "memory_mib" {
  type        = number
  default     = 512
  nullable    = false
  description = "Memory, MiB."
}

variable "stop_timeout_seconds" {
  type        = number
  default     = 30
  description = "Longer than LANEWAY_DRAIN_GRACE and what follows it."

  validation {
    condition     = var.stop_timeout_seconds >= 20 && var.stop_timeout_seconds <= 120
    error_message = "From 20 to 120 seconds."
  }
}

variable "log_retention_days" {
  type        = number
  default     = 30
  description = "How long its log is kept."
}
