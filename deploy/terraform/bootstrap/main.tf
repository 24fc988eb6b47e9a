# Once in each account, by hand: what the workflows need before they can build or deploy anything. Each worker's image
# repository is a file of its own, worker_<name>.tf: a new worker is applied here first.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.0"
    }
  }

  backend "s3" {
    use_lockfile = true
    encrypt      = true
  }
}

provider "aws" {
  region = var.region
}

variable "region" {
  type        = string
  description = "The AWS region."
}

variable "github_repository" {
  type        = string
  description = "owner/name: whose workflows may push images and deploy."

  validation {
    condition     = can(regex("^[\\w.-]+/[\\w.-]+$", var.github_repository))
    error_message = "owner/name."
  }
}

variable "state_bucket" {
  type        = string
  description = "The bucket of the environments' states."
}

variable "environments" {
  type        = set(string)
  default     = ["staging", "production"]
  description = "Which of them this account has: each gets a role that deploys it."
}

variable "promoted_to_accounts" {
  type        = list(string)
  default     = []
  description = "Accounts that production has for itself: they may pull what staging built here."
}

resource "aws_iam_openid_connect_provider" "github" {
  url            = "https://token.actions.githubusercontent.com"
  client_id_list = ["sts.amazonaws.com"]
}

# Workflows of the main branch: build and plan, who have no environment.
data "aws_iam_policy_document" "main_assume" {
  statement {
    actions = ["sts:AssumeRoleWithWebIdentity"]
    principals {
      type        = "Federated"
      identifiers = [aws_iam_openid_connect_provider.github.arn]
    }
    condition {
      test     = "StringEquals"
      variable = "token.actions.githubusercontent.com:aud"
      values   = ["sts.amazonaws.com"]
    }
    condition {
      test     = "StringEquals"
      variable = "token.actions.githubusercontent.com:sub"
      values   = ["repo:${var.github_repository}:ref:refs/heads/main"]
    }
  }
}

data "aws_iam_policy_document" "push" {
  statement {
    actions   = ["ecr:GetAuthorizationToken"]
    resources = ["*"]
  }
  statement {
    actions = [
      "ecr:BatchCheckLayerAvailability",
      "ecr:BatchGetImage",
      "ecr:CompleteLayerUpload",
      "ecr:DescribeImages",
      "ecr:InitiateLayerUpload",
      "ecr:PutImage",
      "ecr:UploadLayerPart",
    ]
    resources = ["arn:aws:ecr:${var.region}:*:repository/laneway/*"]
  }
}

# Push-only: it builds and pushes, and can change nothing that runs.
resource "aws_iam_role" "push" {
  name               = "laneway-push"
  assume_role_policy = data.aws_iam_policy_document.main_assume.json
}

resource "aws_iam_role_policy" "push" {
  name   = "push"
  role   = aws_iam_role.push.id
  policy = data.aws_iam_policy_document.push.json
}

# Looks up what the registry holds, before people approve.
data "aws_iam_policy_document" "plan" {
  statement {
    actions   = ["ecr:DescribeImages"]
    resources = ["arn:aws:ecr:${var.region}:*:repository/laneway/*"]
  }
}

resource "aws_iam_role" "plan" {
  name               = "laneway-plan"
  assume_role_policy = data.aws_iam_policy_document.main_assume.json
}

resource "aws_iam_role_policy" "plan" {
  name   = "plan"
  role   = aws_iam_role.plan.id
  policy = data.aws_iam_policy_document.plan.json
}

data "aws_iam_policy_document" "promoted" {
  statement {
    actions = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    principals {
      type        = "AWS"
      identifiers = [for account in var.promoted_to_accounts : "arn:aws:iam::${account}:root"]
    }
  }
}

output "push_role_arn" {
  value       = aws_iam_role.push.arn
  description = "PUSH_ROLE_ARN of the repository's variables, out of staging's account."
}

output "plan_role_arn" {
  value       = aws_iam_role.plan.arn
  description = "PLAN_ROLE_ARN of the repository's variables, out of staging's account."
}
