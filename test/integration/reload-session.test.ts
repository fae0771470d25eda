/** A session that outlasts reloads keeps the runtime that it began in, and no later one. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { queryObjects } from "node:v8";
import { App } from "#app/app.ts";
import { parseFlags } from "#cli/flags.ts";
import { overrideWith, setUp } from "#cli/load.ts";
import { RUN_FLAGS } from "#cli/run-flags.ts";
import { openHost } from "#host/host.ts";
import { LogHub } from "#host/log.ts";
import { Runtime } from "#runtime/runtime.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { until } from "../support/until.ts";

test("of five reloads under one session two runtimes are left: its own, and the one in force", async () => {
  const [port] = (await freePorts(1)) as [number];
  const home = mkdtempSync(join(tmpdir(), "weir-session-"));
  try {
    writeFileSync(
      join(home, "config.yaml"),
      `mixed-port: ${port}\nrelay: portable\nrules: ["MATCH,DIRECT"]\n`,
    );
    const log = new LogHub("error", { write: () => {}, flush: () => {} });
    const flags = parseFlags(["-d", home], RUN_FLAGS, {});
    const setup = setUp(flags, {}, log);
    using host = openHost(home, setup.files, log);
    const { result } = setup.first();
    assert.ok(result.config !== undefined);
    const override = overrideWith(flags, null, setup);
    await using app = await App.start(result.config, {
      host,
      loader: setup.loader,
      override,
      restart: () => {},
    });
    await using origin = await openTcpOrigin(echo);
    const client = connect(port, "127.0.0.1");
    client.write(`CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await once(client, "data");
    for (let reload = 0; reload < 5; reload++) await app.reload();
    const runtimes = (): number => queryObjects(Runtime, { format: "count" });
    await until(
      () => `${runtimes()} runtimes`,
      () => runtimes() === 2,
    );
    client.destroy();
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
