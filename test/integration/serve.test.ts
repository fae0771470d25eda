import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { duplexPair } from "node:stream";
import type { Duplex } from "node:stream";
import type { DialError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Router } from "#core/router.ts";
import type { Destination } from "#core/session.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { directOutbound } from "#protocols/direct/index.ts";
import { passOutbound, rejectDropOutbound, rejectOutbound } from "#protocols/reject/index.ts";
import { LiveTable } from "#dataplane/connections.ts";
import { serveSession } from "#dataplane/session.ts";
import { readAll } from "../support/client.ts";
import { watchLeaks } from "../support/leaks.ts";
import { decisionOf, matchAll, metadataOf } from "../support/metadata.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { literalsOnly } from "../support/resolvers.ts";
import { plainServeEnv } from "../support/serve-env.ts";

const direct = directOutbound("DIRECT", openDirectDialer({ resolver: literalsOnly }));

function recordingLog(): Log & { readonly lines: string[] } {
  const lines: string[] = [];
  const at = (level: string) => (text: string | (() => string)) =>
    void lines.push(`${level} ${typeof text === "string" ? text : text()}`);
  return { lines, debug: at("debug"), info: at("info"), warning: at("warning"), error: at("error") };
}

function start(outbound: Outbound, destination: Destination) {
  const [client, stream] = duplexPair({ allowHalfOpen: true });
  const live = new LiveTable();
  const log = recordingLog();
  const replies: (Error | null)[] = [];
  const router: Router = {
    route: async (metadata) => decisionOf(outbound, metadata.destination, matchAll),
  };
  const metadata = metadataOf(destination);
  const reply = (failure: Error | null): void => {
    if (replies.push(failure) === 1 && failure !== null) stream.write("sorry");
  };
  const env = {
    ...plainServeEnv({ router, live, log }),
    backend: null,
    idleMs: Infinity,
    halfClosedIdleMs: 60_000,
  };
  const { promise: done, resolve: onEnd } = Promise.withResolvers<void>();
  serveSession({ network: "tcp", metadata, stream, reply }, env, onEnd);
  return { client: client as Duplex, stream: stream as Duplex, live, log, replies, done, metadata };
}

test("a connection is visible while it lasts, counted, and logged once", async () => {
  const noLeaks = watchLeaks();
  {
    await using origin = await openTcpOrigin(echo);
    const { client, live, log, replies, done, metadata } = start(direct, origin.destination);
    client.write("hello");
    await once(client, "data");
    const [row] = [...live];
    assert.deepEqual([row?.uploadBytes, row?.downloadBytes, row?.remoteAddress], [5, 5, "127.0.0.1"]);
    assert.deepEqual(row?.decision?.chain, ["DIRECT"]);
    client.end();
    await readAll(client);
    await done;
    assert.deepEqual(replies, [null]);
    assert.deepEqual([live.size, live.uploadTotalBytes, live.downloadTotalBytes], [0, 5, 5]);
    const [kept] = [...live.ended];
    assert.deepEqual([kept?.metadata, kept?.reason, kept?.uploadBytes], [metadata, "over", 5]);
    const { port } = metadata.destination;
    assert.deepEqual(log.lines, [
      `info [TCP] 127.0.0.1:50000 --> 127.0.0.1:${port} match Match using DIRECT`,
    ]);
  }
  await noLeaks();
});

test("a failed dial is reported to the client and to the log, and is no session", async () => {
  const origin = await openTcpOrigin(echo);
  await origin[Symbol.asyncDispose]();
  const { client, replies, done, log, live } = start(direct, origin.destination);
  assert.equal((await readAll(client)).toString(), "sorry");
  await done;
  assert.equal((replies[0] as DialError).reason, "refused");
  assert.equal(live.size, 0);
  const [kept] = [...live.ended];
  assert.equal(kept?.reason, "not-dialled");
  assert.match(kept?.detail ?? "", /ECONNREFUSED/);
  const [line] = log.lines;
  assert.match(
    line ?? "",
    /^warning \[TCP\] dial DIRECT \(match Match\/\) 127\.0\.0\.1:50000 --> .* error: .*ECONNREFUSED/,
  );
});

test("a rejection is an outcome, not a warning", async () => {
  for (const outbound of [rejectOutbound("REJECT"), rejectDropOutbound("REJECT-DROP", 5)]) {
    const { client, replies, done, log, live } = start(outbound, {
      host: "ads.example",
      ip: null,
      port: 443,
    });
    client.resume();
    await done;
    assert.equal((replies[0] as DialError).reason, outbound.type === "Reject" ? "rejected" : "dropped");
    assert.deepEqual(
      [...live.ended].map(({ reason }) => reason),
      ["rejected"],
    );
    assert.deepEqual(log.lines, [
      `info [TCP] 127.0.0.1:50000 --> ads.example:443 match Match using ${outbound.name}`,
    ]);
  }
});

test("a client that hangs up ends a dial, even a held one; so does closing the row", async () => {
  const noLeaks = watchLeaks();
  for (const end of ["hang up", "close"]) {
    const { client, stream, done, live } = start(rejectDropOutbound("REJECT-DROP"), {
      host: "a.example",
      ip: null,
      port: 1,
    });
    await delay(1);
    if (end === "close") live.closeAll();
    else stream.destroy(new Error("ECONNRESET"));
    client.resume();
    await done;
    assert.equal(live.size, 0);
    const wanted = end === "close" ? "closed" : "client-lost";
    assert.deepEqual(
      [...live.ended].map(({ reason }) => reason),
      [wanted],
    );
    client.destroy();
  }
  await noLeaks();
});

test("PASS is never dialled, and says so", async () => {
  const pass = passOutbound("PASS", "rule");
  const context = { signal: new AbortController().signal, metadata: null };
  await assert.rejects(pass.connect({ host: "a.example", ip: null, port: 1 }, context), {
    reason: "unsupported",
  });
  assert.equal(pass.passes, "rule");
});
