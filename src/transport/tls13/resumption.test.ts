import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { makeCertificate } from "../../../test/support/certificate.ts";
import { connection13 } from "../../../test/support/tls13-dial.ts";
import { answerHello, type Part, type Resumed, sealFlight } from "../../../test/support/tls13-server.ts";
import { TlsFault } from "./alerts.ts";
import { cipherSuite } from "./cipher-suites.ts";
import { acceptAnybody } from "./leaf-certificate.ts";
import { decodeClientHello } from "./hello-messages.ts";
import { KeySchedule } from "./key-schedule.ts";
import { type Session, Sessions } from "./sessions.ts";

const SUITE = cipherSuite(0x1301) ?? assert.fail();
const certificate = makeCertificate({ names: ["server.test"] });
const RESUMED: readonly Part[] = ["hello", "extensions", "finished"];
const HOUR_MS = 3_600_000;

function session(changes: Partial<Session> = {}): Session {
  const nowMs = Date.now();
  return {
    ticket: randomBytes(180),
    secret: randomBytes(32),
    suite: SUITE,
    ageAdd: 7,
    sinceMs: nowMs,
    untilMs: nowMs + HOUR_MS,
    chain: [Buffer.from("the chain of then")],
    ...changes,
  };
}

/** A connection that has shown a session, and its hello. */
function begin(shown: Session | null, judged: Buffer[] = []) {
  const connection = connection13({
    session: shown,
    sessions: new Sessions(),
    judge: (what) => {
      judged.push(...what.chain);
      if (shown !== null && what.chain === shown.chain) return acceptAnybody({ ...what, chain: [der] });
      return acceptAnybody(what);
    },
  });
  connection.start();
  const hello = (connection.takeOutput() ?? assert.fail()).subarray(5);
  return { connection, hello };
}
const der = Buffer.from(certificate.cert.replaceAll(/-----[^-]+-----|\s/g, ""), "base64");

/** The alert that is said; null: none. */
function outcome(shown: Session | null, resumed: Resumed, order: readonly Part[] = RESUMED): string | null {
  const { connection, hello } = begin(shown);
  connection.feed(sealFlight(answerHello(hello, certificate, resumed), order));
  try {
    assert.equal(connection.read(), null);
    return connection.isSecure ? null : "waits";
  } catch (error) {
    assert.ok(error instanceof TlsFault, String(error));
    return error.alert;
  }
}

test("a session that both sides know is resumed, and judged by the chain of then", () => {
  const shown = session();
  const judged: Buffer[] = [];
  const { connection, hello } = begin(shown, judged);
  const flight = answerHello(hello, certificate, { secret: shown.secret });
  connection.feed(sealFlight(flight, RESUMED));
  assert.equal(connection.read(), null);
  assert.equal(connection.isSecure, true);
  assert.deepEqual(judged, shown.chain);
});

test("the session stands last in the hello, and its binder proves the secret over all before it", () => {
  const shown = session({ sinceMs: Date.now() - 5000 });
  const { hello } = begin(shown);
  const { extensions } = decodeClientHello(hello.subarray(4));
  assert.equal([...extensions.keys()].at(-1), 41);
  const body = extensions.get(41) ?? assert.fail();
  assert.equal(body.readUInt16BE(0), 2 + 180 + 4);
  assert.deepEqual(body.subarray(4, 184), shown.ticket);
  const age = body.readUInt32BE(184) - shown.ageAdd;
  assert.ok(age >= 5000 && age < 15_000, `an age of ${age} ms`);
  assert.deepEqual(body.subarray(188, 191), Buffer.of(0, 33, 32));
  const bound = createHash("sha256").update(hello.subarray(0, -35)).digest();
  assert.deepEqual(body.subarray(191), new KeySchedule(SUITE, shown.secret).binder(bound));
});

test("a server that does not know the secret, or breaks the rules, is refused", () => {
  const shown = session();
  const { secret } = shown;
  assert.equal(outcome(shown, { secret }), null);
  assert.equal(outcome(shown, { secret: randomBytes(32) }), "bad_record_mac");
  assert.equal(outcome(shown, { secret, identity: 1 }), "illegal_parameter");
  assert.equal(outcome(shown, { secret, withoutShare: true }), "missing_extension");
  assert.equal(outcome(null, { secret }), "unsupported_extension");
  const other = cipherSuite(0x1302) ?? assert.fail();
  assert.equal(outcome(session({ suite: other, secret: randomBytes(48) }), { secret }), "illegal_parameter");
});

test("a certificate, or a request for one, has no place in a session that is resumed", () => {
  const shown = session();
  const { secret } = shown;
  const order: Part[] = ["hello", "extensions", "certificate", "finished"];
  assert.equal(outcome(shown, { secret }, order), "unexpected_message");
  assert.equal(outcome(shown, { secret }, ["hello", "extensions", "verify"]), "unexpected_message");
  assert.equal(outcome(shown, { secret }, ["hello", "finished"]), "unexpected_message");
  assert.equal(outcome(shown, { secret }, ["hello", "extensions"]), "waits");
});

const TICKET = {
  lifetimeSeconds: 60,
  ageAdd: 1,
  nonce: Buffer.of(0),
  ticket: Buffer.from("ticket"),
};
const ORIGIN = { suite: SUITE, resumption: Buffer.alloc(32, 1), chain: [] };

test("sessions are used once, the newest first, and four are kept", () => {
  const sessions = new Sessions();
  for (let at = 0; at < 6; at++) sessions.keep({ ...TICKET, nonce: Buffer.of(at), ageAdd: at }, ORIGIN);
  const taken = Array.from({ length: 5 }, () => sessions.take()?.ageAdd ?? null);
  assert.deepEqual(taken, [5, 4, 3, 2, null]);
});

test("a session lasts as long as the server says, and none that the clock has left", () => {
  let nowMs = 1_000_000;
  const sessions = new Sessions(() => nowMs);
  sessions.keep({ ...TICKET, lifetimeSeconds: 0 }, ORIGIN);
  sessions.keep({ ...TICKET, ticket: Buffer.alloc(2049) }, ORIGIN);
  assert.equal(sessions.take(), null);
  for (const [later, isGood] of [
    [59_999, true],
    [60_000, false],
    [-1, false],
  ] as const) {
    nowMs = 1_000_000;
    sessions.keep(TICKET, ORIGIN);
    nowMs += later;
    assert.equal(sessions.take() !== null, isGood, `after ${later} ms`);
  }
  nowMs = 1_000_000;
  sessions.keep(TICKET, ORIGIN);
  sessions.clear();
  assert.equal(sessions.take(), null);
});
