#!/usr/bin/env bash
# Promotes a commit's images, as staging recorded them, into production's repositories: copied by digest where production has an
# account of its own, and tagged release-<commit>, so that no lifecycle rule takes away what production runs. Safe to repeat.
# From the environment: COMMIT, FROM_REGISTRY (staging's), TO_REGISTRY (production's), GITHUB_REPOSITORY, GITHUB_TOKEN, AWS
# credentials; docker is logged in to both.
set -euo pipefail
cd "$(dirname "$0")/environments/production"
: "${COMMIT:?give all 40 digits of the commit}" "${FROM_REGISTRY:?}" "${TO_REGISTRY:?}"

workers="$(for file in worker_*.tf; do sed -n 's/^  name  *= "\(.*\)"$/\1/p' "$file"; done | paste -sd, -)"
digests="$(deno run -A ../../../../tools/deployment_record.ts read --commit "$COMMIT" --workers "$workers")"

held() {
  aws ecr describe-images --repository-name "laneway/$1" --image-ids "imageTag=release-$COMMIT" \
    --query 'imageDetails[0].imageDigest' --output text 2> /dev/null || true
}

for worker in ${workers//,/ }; do
  digest="$(jq --raw-output --arg worker "$worker" '.[$worker]' <<< "$digests")"
  # Tags are immutable: one that stands is not written again.
  if [ "$(held "$worker")" != "$digest" ]; then
    docker buildx imagetools create --tag "$TO_REGISTRY/laneway/$worker:release-$COMMIT" "$FROM_REGISTRY/laneway/$worker@$digest"
  fi
  now="$(held "$worker")"
  if [ "$now" != "$digest" ]; then
    echo "laneway/$worker:release-$COMMIT is $now, not $digest as recorded; nothing was deployed" >&2
    exit 1
  fi
done
