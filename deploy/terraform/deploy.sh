#!/usr/bin/env bash
# Deploys a commit's images to an environment: their digests out of the record, the migrations to their end, then the services.
# From the environment: COMMIT, ENVIRONMENT (staging or production), GITHUB_REPOSITORY, GITHUB_TOKEN, AWS credentials. The
# environment's backend.hcl and terraform.tfvars stand in its folder, or their contents in BACKEND_CONFIG and TFVARS.
set -euo pipefail
cd "$(dirname "$0")/environments/${ENVIRONMENT:?give staging or production}"
: "${COMMIT:?give all 40 digits of the commit}"

if [ -n "${BACKEND_CONFIG:-}" ]; then printf '%s\n' "$BACKEND_CONFIG" > backend.hcl; fi
if [ -n "${TFVARS:-}" ]; then printf '%s\n' "$TFVARS" > terraform.tfvars; fi

# The workers of the environment are its files.
workers="$(for file in worker_*.tf; do sed -n 's/^  name  *= "\(.*\)"$/\1/p' "$file"; done | paste -sd, -)"
digests="$(deno run -A ../../../../tools/deployment_record.ts read --commit "$COMMIT" --workers "$workers")"
echo "promoting $COMMIT: $digests"
export TF_VAR_image_digests="$digests" TF_INPUT=0

terraform init -backend-config=backend.hcl

# First what migrates, and what it needs: the schema goes ahead of the code, which refuses an older one.
targets=(-target=aws_ecs_cluster.this)
for worker in ${workers//,/ }; do
  module="module.${worker//-/_}"
  targets+=("-target=$module.aws_ecs_task_definition.migrate" "-target=$module.aws_vpc_security_group_egress_rule.all")
  targets+=("-target=$module.aws_iam_role_policy.secrets" "-target=$module.aws_iam_role_policy_attachment.execution")
done
terraform apply -auto-approve "${targets[@]}"

cluster="laneway-$ENVIRONMENT"
for worker in ${workers//,/ }; do
  migrate="$(terraform output -json "${worker//-/_}_migrate")"
  task="$(aws ecs run-task --cluster "$cluster" --launch-type FARGATE --query 'tasks[0].taskArn' --output text \
    --network-configuration "$(jq --compact-output .network <<< "$migrate")" \
    --task-definition "$(jq --raw-output .task_definition_arn <<< "$migrate")")"
  aws ecs wait tasks-stopped --cluster "$cluster" --tasks "$task"
  code="$(aws ecs describe-tasks --cluster "$cluster" --tasks "$task" --query 'tasks[0].containers[0].exitCode' --output text)"
  if [ "$code" != 0 ]; then
    echo "the migrations of $worker ended with $code; the services were not changed" >&2
    exit 1
  fi
done

terraform apply -auto-approve
for worker in ${workers//,/ }; do
  aws ecs wait services-stable --cluster "$cluster" --services "$worker"
  # One that was rolled back is stable too, on what ran before.
  wanted="$(terraform output -raw "${worker//-/_}_task_definition")"
  runs="$(aws ecs describe-services --cluster "$cluster" --services "$worker" --query 'services[0].taskDefinition' --output text)"
  if [ "$runs" != "$wanted" ]; then
    echo "the deployment of $worker was rolled back: it runs $runs, not $wanted; its log says why" >&2
    exit 1
  fi
done
