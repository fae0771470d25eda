import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { makeCertificate } from "../../../test/support/certificate.ts";
import { judgeChain } from "./chain-judge.ts";
import { JudgedChains } from "./judged-chains.ts";

const der = (): Buffer => new X509Certificate(makeCertificate({ names: ["server.test"] }).cert).raw;
const OPTIONS = {
  serverName: "server.test",
  nameCertVerify: null,
  skipCertVerify: false,
  fingerprint: null,
} as const;
const NOTHING = Buffer.alloc(0);

/** A judge over a library that says what `refusal` says. */
function judging(options: object = {}) {
  const state = { nowMs: Date.now(), asked: 0, refusal: null as string | null };
  const judged = new JudgedChains(() => state.nowMs);
  const verify = (chain: readonly Buffer[]) => {
    state.asked++;
    const lastsMs = Date.parse(new X509Certificate(chain[0] ?? NOTHING).validTo) - state.nowMs;
    return { error: state.refusal === null ? 0 : 20, refusal: state.refusal, found: chain, lastsMs };
  };
  const judge = (...chain: readonly Buffer[]) =>
    judgeChain(
      { chain, clientHello: NOTHING, serverHello: NOTHING, isEchRejected: false },
      { ...OPTIONS, ...options },
      verify,
      judged,
    );
  return { state, judge };
}

test("a chain that was found good is judged again after five minutes, or where the clock went back", () => {
  const { state, judge } = judging();
  const chain = der();
  const key = judge(chain);
  assert.ok(key.equals(new X509Certificate(chain).publicKey));
  assert.equal(judge(chain), key);
  assert.equal(state.asked, 1);
  state.nowMs += 299_999;
  judge(chain);
  assert.equal(state.asked, 1);
  state.nowMs += 1;
  state.refusal = "it was revoked";
  assert.throws(() => judge(chain), /revoked/);
  state.nowMs -= 400_000;
  assert.throws(() => judge(chain), /revoked/);
});

test("a chain is judged again when one of its certificates has run out", () => {
  const { state, judge } = judging();
  const chain = der();
  state.nowMs = Date.parse(new X509Certificate(chain).validTo) - 1000;
  judge(chain);
  state.nowMs += 999;
  judge(chain);
  assert.equal(state.asked, 1);
  state.nowMs += 1;
  judge(chain);
  assert.equal(state.asked, 2);
});

test("what was refused, another chain, and the same bytes cut elsewhere are judged", () => {
  const { state, judge } = judging();
  const [one, two] = [der(), der()];
  state.refusal = "the issuer is unknown";
  for (let time = 1; time <= 2; time++) {
    assert.throws(() => judge(one), /issuer is unknown/);
    assert.equal(state.asked, time);
  }
  state.refusal = null;
  judge(one, two);
  state.refusal = "the issuer is unknown";
  assert.throws(() => judge(one), /issuer is unknown/);
  assert.throws(() => judge(two, one), /issuer is unknown/);
  assert.throws(() => judge(Buffer.concat([one, two])), /issuer is unknown/);
  judge(one, two);

  const wrongName = judging({ serverName: "other.test" });
  for (let time = 1; time <= 2; time++) assert.throws(() => wrongName.judge(one), /altnames/);
});

test("chains of eight servers are remembered, a ninth pushes the oldest out", () => {
  const { state, judge } = judging();
  const base = der();
  const chains = Array.from({ length: 9 }, (_, at) => [base, ...Array<Buffer>(at).fill(base)]);
  for (const chain of chains.slice(0, 8)) judge(...chain);
  for (const chain of chains.slice(0, 8)) judge(...chain);
  assert.equal(state.asked, 8);
  for (const chain of chains.slice(8)) judge(...chain);
  judge(...(chains[0] ?? []));
  assert.equal(state.asked, 10);
});
