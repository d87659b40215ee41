# What a change is compared with: the branch that it is to land on, else the last commit.
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || echo HEAD)
LINT := go tool -modfile=tools/go.mod golangci-lint

# The folders with Go files that differ from BASE, or whose test data does.
CHANGED = $(shell { git diff --name-only $(BASE); git ls-files --others --exclude-standard; } | \
	sed 's|/testdata/.*|/.|' | xargs -r -n 1 dirname | sort -u | \
	while read -r d; do ls $$d/*.go >/dev/null 2>&1 && echo ./$$d; done)

.PHONY: check build test long

# check is for every change before it is committed.
check: build
	go vet ./...
	$(LINT) run ./...
	$(LINT) fmt --diff ./...
	go test ./internal/archtest $(CHANGED)

build:
	go build -o bin/dure ./cmd/dure

test:
	go test ./...

# long takes hours.
long:
	.ci/long
