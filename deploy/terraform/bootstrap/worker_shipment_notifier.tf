# Generated: deno task docs. Change tools/deploy instead; what differs between workers is given by variables.

resource "aws_ecr_repository" "shipment_notifier" {
  name                 = "laneway/shipment-notifier"
  image_tag_mutability = "IMMUTABLE"

  image_scanning_configuration {
    scan_on_push = true
  }
}

# What a rule matches, no later one expires: an image that was ever promoted stays, however many were built since.
resource "aws_ecr_lifecycle_policy" "shipment_notifier" {
  repository = aws_ecr_repository.shipment_notifier.name

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
resource "aws_ecr_repository_policy" "shipment_notifier" {
  count = length(var.promoted_to_accounts) == 0 ? 0 : 1

  repository = aws_ecr_repository.shipment_notifier.name
  policy     = data.aws_iam_policy_document.promoted.json
}
