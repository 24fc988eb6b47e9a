# The role that deploys an environment: what its Terraform makes, the migrations' tasks, and the images it promotes. Only a job
# of that GitHub environment has it, once the environment's reviewers have said so.

data "aws_iam_policy_document" "deploy_assume" {
  for_each = var.environments

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
      values   = ["repo:${var.github_repository}:environment:${each.key}"]
    }
  }
}

data "aws_iam_policy_document" "deploy" {
  for_each = var.environments

  # Services, tasks, logs, alarms, scaling: by their names they are those of the cluster, but not all of it can be said by name.
  statement {
    actions = [
      "application-autoscaling:*",
      "cloudwatch:DeleteAlarms",
      "cloudwatch:DescribeAlarms",
      "cloudwatch:ListTagsForResource",
      "cloudwatch:PutMetricAlarm",
      "cloudwatch:TagResource",
      "cloudwatch:UntagResource",
      "ec2:AuthorizeSecurityGroup*",
      "ec2:CreateSecurityGroup",
      "ec2:CreateTags",
      "ec2:DeleteSecurityGroup",
      "ec2:DeleteTags",
      "ec2:Describe*",
      "ec2:ModifySecurityGroupRules",
      "ec2:RevokeSecurityGroup*",
      "ecr:GetAuthorizationToken",
      "ecs:*",
      "logs:CreateLogGroup",
      "logs:DeleteLogGroup",
      "logs:DescribeLogGroups",
      "logs:ListTagsForResource",
      "logs:PutRetentionPolicy",
      "logs:TagResource",
      "logs:UntagResource",
    ]
    resources = ["*"]
  }

  statement {
    actions   = ["sns:*"]
    resources = ["arn:aws:sns:${var.region}:*:laneway-${each.key}-*"]
  }

  # Roles of its workers alone, handed to tasks and to nothing else.
  statement {
    actions = [
      "iam:AttachRolePolicy",
      "iam:CreateRole",
      "iam:DeleteRole",
      "iam:DeleteRolePolicy",
      "iam:DetachRolePolicy",
      "iam:GetRole",
      "iam:GetRolePolicy",
      "iam:ListAttachedRolePolicies",
      "iam:ListInstanceProfilesForRole",
      "iam:ListRolePolicies",
      "iam:PutRolePolicy",
      "iam:TagRole",
      "iam:UntagRole",
      "iam:UpdateAssumeRolePolicy",
    ]
    resources = ["arn:aws:iam::*:role/${each.key}-*"]
  }
  statement {
    actions   = ["iam:PassRole"]
    resources = ["arn:aws:iam::*:role/${each.key}-*"]
    condition {
      test     = "StringEquals"
      variable = "iam:PassedToService"
      values   = ["ecs-tasks.amazonaws.com"]
    }
  }
  statement {
    actions   = ["iam:CreateServiceLinkedRole"]
    resources = ["*"]
    condition {
      test     = "StringEquals"
      variable = "iam:AWSServiceName"
      values   = ["ecs.amazonaws.com", "ecs.application-autoscaling.amazonaws.com"]
    }
  }

  # Its state, and the file that locks it.
  statement {
    actions   = ["s3:ListBucket"]
    resources = ["arn:aws:s3:::${var.state_bucket}"]
  }
  statement {
    actions   = ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
    resources = ["arn:aws:s3:::${var.state_bucket}/*"]
  }

  # promote.sh: pulls what staging built, and pushes it under a release's tag.
  statement {
    actions = [
      "ecr:BatchCheckLayerAvailability",
      "ecr:BatchGetImage",
      "ecr:CompleteLayerUpload",
      "ecr:DescribeImages",
      "ecr:GetDownloadUrlForLayer",
      "ecr:InitiateLayerUpload",
      "ecr:PutImage",
      "ecr:UploadLayerPart",
    ]
    resources = ["arn:aws:ecr:${var.region}:*:repository/laneway/*"]
  }
}

resource "aws_iam_role" "deploy" {
  for_each = var.environments

  name               = "laneway-deploy-${each.key}"
  assume_role_policy = data.aws_iam_policy_document.deploy_assume[each.key].json
}

resource "aws_iam_role_policy" "deploy" {
  for_each = var.environments

  name   = "deploy"
  role   = aws_iam_role.deploy[each.key].id
  policy = data.aws_iam_policy_document.deploy[each.key].json
}

output "deploy_role_arns" {
  value       = { for environment in var.environments : environment => aws_iam_role.deploy[environment].arn }
  description = "DEPLOY_ROLE_ARN of each GitHub environment's variables."
}
