resource "aws_ecr_repository" "maintenance" {
  name                 = "laneway/maintenance"
  image_tag_mutability = "IMMUTABLE"

  image_scanning_configuration {
    scan_on_push = true
  }
}

# What production runs is named by digest and may be old: only what was never given a release's tag goes.
resource "aws_ecr_lifecycle_policy" "maintenance" {
  repository = aws_ecr_repository.maintenance.name

  policy = jsonencode({
    rules = [
      {
        rulePriority = 1
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
