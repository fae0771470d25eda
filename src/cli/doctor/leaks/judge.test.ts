import assert from "node:assert/strict";
import { test } from "node:test";
import { ipOf } from "#net/address/ip.ts";
import { leakFinding, type Trial } from "./judge.ts";

const OWN = new Set([ipOf("192.0.2.2"), ipOf("2001:db8::2")]);
const TRIAL: Trial = {
  kind: "stun",
  network: "udp",
  family: 4,
  server: "198.51.100.1:3478",
  bound: null,
  refused: null,
  answered: true,
  shown: [],
  passage: null,
  askedWeir: false,
};
const far = { chain: "GLOBAL → far", rule: "Match", direct: false };
const judged = (trial: Partial<Trial>) => leakFinding({ ...TRIAL, ...trial }, OWN);

test("what weir lets out by a proxy is no leak, unless the server sees an own address", () => {
  assert.deepEqual(judged({ passage: far, shown: [ipOf("203.0.113.9")] }), {
    what: "leak: STUN 198.51.100.1:3478 over UDP, IPv4",
    level: "ok",
    found: "weir lets it out by GLOBAL → far (Match); it saw 203.0.113.9",
  });
  const shown = judged({ passage: far, shown: [ipOf("203.0.113.9"), ipOf("192.0.2.2")] });
  assert.equal(shown.level, "error");
  assert.match(shown.found, /it saw 192\.0\.2\.2$/);
});

test("a direct rule is named", () => {
  const { level, advice } = judged({ passage: { ...far, direct: true, rule: "DstPort,3478" } });
  assert.equal(level, "error");
  assert.match(advice ?? "", /a rule before DstPort,3478/);
});

test("what passes weir by: the advice is that of the kind", () => {
  const advices = [
    judged({}),
    judged({ family: 6 }),
    judged({ bound: "192.0.2.2" }),
    judged({ kind: "dns" }),
  ].map(({ level, advice = "" }) => [level, advice]);
  for (const [level] of advices) assert.equal(level, "error");
  assert.match(advices[0]?.[1] ?? "", /exclude-/);
  assert.match(advices[1]?.[1] ?? "", /inet6-address/);
  assert.match(advices[2]?.[1] ?? "", /auto-redirect/);
  assert.match(advices[3]?.[1] ?? "", /dns-hijack/);
});

test("refused at once, answered by weir: nothing; no answer at all: a warning", () => {
  assert.equal(judged({ answered: false, refused: "ENETUNREACH" }).level, "ok");
  assert.equal(judged({ kind: "dns", askedWeir: true }).level, "ok");
  assert.equal(judged({ answered: false }).level, "warning");
});
