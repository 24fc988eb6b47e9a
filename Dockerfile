# One image for each worker: docker build --build-arg WORKER=shipment-notifier --build-arg COMMIT=$(git rev-parse --short=12 HEAD) .
FROM denoland/deno:debian-2.7.11 AS build
ARG WORKER=shipment-notifier
ARG COMMIT=unknown
WORKDIR /src
COPY . .
RUN deno task compile "$WORKER" --profile container --commit "$COMMIT" --out /out/worker

# cc, not base: the runtime needs libgcc_s. By digest, so that the same commit is the same image; .github/dependabot.yml
# proposes newer ones. The image holds no shell; the binary checks its own health.
FROM gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f
COPY --from=build /out/worker /usr/local/bin/worker
USER 65532:65532
# Probes come from outside the container.
ENV LANEWAY_HTTP_HOST=0.0.0.0 LANEWAY_LOG_FORMAT=json
EXPOSE 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["/usr/local/bin/worker", "check", "--health"]
ENTRYPOINT ["/usr/local/bin/worker"]
