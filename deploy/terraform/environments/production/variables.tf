variable "region" {
  type        = string
  description = "The AWS region."
}

variable "vpc_id" {
  type        = string
  description = "The network of the workers and their database."
}

variable "subnet_ids" {
  type        = list(string)
  description = "Private subnets of it, with a way out."
}

variable "scraper_security_group_id" {
  type        = string
  default     = null
  description = "Who may scrape metrics; null is nobody."
}

variable "database_secrets" {
  type = object({
    runtime = string
    system  = string
    migrate = string
  })
  description = "ARNs of the secrets that hold the three logins' URLs."
}

variable "alarm_emails" {
  type        = set(string)
  default     = []
  description = "Who is told of alarms; each confirms by a mail. Other subscribers are added to the topic laneway-<environment>-alarms."
}

variable "image_digests" {
  type        = map(string)
  description = "Which image of each worker runs, by its name: sha256:… The workflows give it from the deployment record."
}

variable "worker_secrets" {
  type        = map(map(string))
  default     = {}
  description = "Of each worker, its own secrets: variable → ARN."
}

variable "worker_settings" {
  type        = map(map(string))
  default     = {}
  description = "Of each worker, its settings that are no secrets: LANEWAY_CAPACITY and the like."
}

variable "worker_sizes" {
  type = map(object({
    cpu           = optional(number)
    memory_mib    = optional(number)
    desired_count = optional(number)
    maximum_count = optional(number)
  }))
  default     = {}
  description = "Of each worker, what differs from the module's defaults and from desired_count."
}

variable "autoscaling_enabled" {
  type        = bool
  default     = true
  description = "Whether workers' counts follow the age of the oldest item."
}

variable "desired_count" {
  type        = number
  default     = 2
  description = "How many of each worker run."
}
