#!/bin/sh
# The schema, and what the nodes see of it. May be run again: with each new weir it is.
set -eu
config="${1:-/fleet/fra-1.yaml}"
weir fleet migrate -f "$config"
for login in fra1 ams1; do weir fleet allow -writes -f "$config" "$login" '*'; done
