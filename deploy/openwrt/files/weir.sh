#!/bin/sh
# The program on the system's own Node, which must be 26.10 or newer.
exec /usr/bin/node --disable-warning=ExperimentalWarning --max-semi-space-size=8 /usr/lib/weir/boot.mjs "$@"
