# A small image of the node: built from source, run without root, its data in a volume.
#
#   docker build --tag wow .
#   docker run --rm --publish 127.0.0.1:8080:8080 --volume wow-data:/var/lib/wow \
#     --env WOW__ACCESS__ALLOW_OPEN_ON_PUBLIC=true wow
#
# In the container the port has to listen on all addresses, and open access is refused there
# unless the environment says that the network keeps strangers out, as above; or set
# WOW__ACCESS__MODE=jwt and give it the keys. `compose.yaml` runs it on PostgreSQL.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /build
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --profile dist --locked --bin wow \
    && install -D --strip target/dist/wow /out/usr/local/bin/wow \
    && install -d -m 0750 /out/var/lib/wow

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build --chown=65532:65532 /out/var/lib/wow /var/lib/wow
COPY --from=build /out/usr/local/bin/wow /usr/local/bin/wow
# Asks for the node's health; the image has no other client, and no shell.
COPY --from=busybox:1.37-musl /bin/busybox /usr/bin/wget
ENV WOW__HTTP__BIND=0.0.0.0:8080 \
    WOW__STORAGE__URL=sqlite:///var/lib/wow/wow.db
WORKDIR /var/lib/wow
USER 65532:65532
VOLUME /var/lib/wow
EXPOSE 8080
# The node drains at SIGTERM and exits with 0; allow it `runtime.shutdown-timeout` (60 s):
# docker stop --time 65.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/wow"]
CMD ["serve"]
