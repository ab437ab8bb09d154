# What a developer runs. `just verify` is what CI runs; it never writes to the tree.

# List the commands.
default:
    @just --list

# Everything that has to pass, as in CI.
verify:
    bash .ci/run

# Bring the tree into shape: format, and what clippy can mend by itself.
fix:
    cargo fmt --all
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged -- -D warnings

# The tests alone, or those whose name holds a word.
test *words:
    cargo nextest run --workspace {{ words }}

# PostgreSQL and MariaDB for `just test` in another shell, which they print how to name, until Ctrl-C.
servers:
    ./test --servers

# A loaded node is killed so many times on one file; its log has to hold what was acknowledged.
kill9 *arguments:
    scripts/kill9 {{ arguments }}

# The benches; `just bench lanes` runs one.
bench *name:
    cargo bench --workspace {{ if name == "" { "" } else { "--bench " + name } }}

# Licences, bans, sources and advisories of all dependencies.
deny:
    cargo deny check

# The manifests of `deploy/`, against their schemas.
deploy-lint:
    scripts/lint-deploy
