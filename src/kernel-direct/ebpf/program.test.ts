/** The program as the kernel runs it, over frames without a network. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Bpf } from "#platform/linux/bpf.ts";
import { libcFor } from "#platform/linux/libc.ts";
import { ACK, frame, SYN, UDP, type FrameSpec } from "../../../test/support/frames.ts";
import { skipNetns } from "../../../test/support/netns.ts";
import { Maps } from "./maps.ts";
import type { Decision } from "./prefixes.ts";
import { classifierProgram, DECISION } from "./program.ts";
import { ffiFor } from "#platform/ffi.ts";

const DIRECT = 0x4000_0000;
const PROXY = 0x2000_0000;
const CONTEXT_BYTES = 192;
const MARK_AT = 8;
const PASS = -1;
const TUN_INDEX = 1; // lo: it takes what is sent to it, and drops it
const REDIRECTED = 7; // TC_ACT_REDIRECT

const skip = skipNetns("the classifier");

function kernel(redirectTo: number | null = null) {
  const [ffi, libc] = [ffiFor("this test"), libcFor("this test")];
  assert.ok(libc !== null);
  const bpf = new Bpf(ffi, libc);
  const maps = new Maps(bpf, { prefixes: 1000, flows: 1000, ways: null }, 1024);
  const program = bpf.loadClassifier(
    classifierProgram({ maps: maps.descriptors, directMark: DIRECT, proxyMark: PROXY, redirectTo }),
    "weir_test",
  );
  after(() => {
    bpf.close(program);
    maps[Symbol.dispose]();
  });
  const put = (content: Record<string, Decision | null>) => maps.change(new Map(Object.entries(content)));
  const run = (spec: FrameSpec, mark = 0) => {
    const context = Buffer.alloc(CONTEXT_BYTES);
    context.writeUInt32LE(mark, MARK_AT);
    const { verdict, context: left } = bpf.testRun(program, frame(spec), context, 1);
    return { verdict, mark: Buffer.from(left).readUInt32LE(MARK_AT) };
  };
  const marked = (spec: FrameSpec, mark = 0) => run(spec, mark).mark;
  return { bpf, maps, program, put, run, marked };
}

test("kernel-direct.md §4.3: the longest prefix decides, other bits of the mark survive", { skip }, () => {
  const { put, run, marked, maps } = kernel();
  put({
    "0.0.0.0/0": DECISION.proxy,
    "::/0": DECISION.proxy,
    "9.9.0.0/16": DECISION.direct,
    "9.9.9.9/32": DECISION.proxy,
    "9.9.9.10/32": DECISION.bypass,
    "2001:db8::1/128": DECISION.direct,
  });
  assert.deepEqual(run({ to: "9.9.1.1" }), { verdict: PASS, mark: DIRECT });
  assert.equal(marked({ to: "9.9.9.9" }), PROXY);
  assert.equal(marked({ to: "8.8.8.8" }), PROXY);
  assert.equal(marked({ to: "9.9.9.10" }, 0x7), 0x7, "bypass");
  assert.equal(marked({ to: "2001:db8::1" }), DIRECT);
  assert.equal(marked({ to: "2001:db8::2" }), PROXY);
  assert.equal(marked({ to: "9.9.1.1" }, 0x8000_00ff + PROXY), DIRECT + 0x8000_00ff);
  assert.equal(marked({ to: "8.8.8.8" }, DIRECT + 1), PROXY + 1);
  assert.equal(marked({ to: "9.9.1.1", protocol: UDP }), DIRECT);
  assert.equal(marked({ to: "9.9.1.1", protocol: 1 }), DIRECT, "ICMP has no ports");
  assert.equal(marked({ to: "2001:db8::1", protocol: 58 }), DIRECT);
  assert.equal(marked({ to: "9.9.1.1", options: 12 }), DIRECT);
  assert.equal(marked({ to: "9.9.1.1", tags: [0x8100] }), DIRECT);
  assert.equal(marked({ to: "9.9.1.1", tags: [0x88a8] }), DIRECT);
  assert.equal(maps.count("direct").packets, 9);
  assert.equal(maps.count("proxy").packets, 4);
  assert.ok(maps.count("direct").bytes >= 9 * 54);
});

test("kernel-direct.md §8.9: what passes unmarked and uncounted", { skip }, () => {
  const { put, run, maps } = kernel();
  put({ "0.0.0.0/0": DECISION.proxy, "::/0": DECISION.direct });
  const to = "9.9.9.9";
  const to6 = "2001:db8::1";
  const never =
    "198.18.0.1 198.19.255.255 10.1.1.1 0.1.1.1 100.64.0.1 100.127.255.255 127.0.0.1 169.254.1.1 172.16.0.1 172.31.255.255 192.168.0.1 224.0.0.1 240.0.0.1 255.255.255.255 fd00::1 fc00::1 fe80::1 febf::1 fec0::1 ff02::1 ::1 ::2";
  const passing: readonly FrameSpec[] = [
    { to, ports: [1000, 53] },
    { to, ports: [53, 1000], protocol: UDP },
    { to: to6, ports: [1000, 53], protocol: UDP },
    { to, fragment: 0x2000 },
    { to, fragment: 0x00b9 },
    { to: to6, extension: 44 },
    { to: to6, extension: 0 },
    { to, tags: [0x8100, 0x8100] },
    { to, tags: [0x88a8, 0x8100] },
    { to, protocol: 47 },
    { to: to6, protocol: 1 },
    { to, cut: 34 },
    ...never.split(" ").map((address) => ({ to: address })),
  ];
  for (const spec of passing)
    assert.deepEqual(run(spec, 0x11), { verdict: PASS, mark: 0x11 }, JSON.stringify(spec));
  for (const counter of ["direct", "proxy", "flowHits"] as const)
    assert.equal(maps.count(counter).packets, 0);
  for (const near of [
    "198.17.255.255",
    "198.20.0.1",
    "100.63.0.1",
    "100.128.0.1",
    "172.15.0.1",
    "172.32.0.1",
  ])
    assert.equal(run({ to: near }).mark, PROXY, near);
  assert.equal(run({ to: "2a00::1" }).mark, DIRECT);
});

test(
  "the flow cache answers for its generation only; maps that are given up let everything pass",
  { skip },
  () => {
    const { put, marked, maps } = kernel();
    const spec = { to: "9.9.9.9" };
    put({ "9.9.9.9/32": DECISION.direct });
    assert.equal(marked(spec), DIRECT);
    assert.equal(marked(spec), DIRECT);
    assert.equal(maps.count("flowHits").packets, 1);
    put({ "9.9.9.9/32": DECISION.proxy });
    assert.equal(marked(spec), PROXY, "the cached decision is of an older generation");
    put({ "9.9.9.9/32": null });
    assert.equal(marked(spec), 0);
    put({ "9.9.9.9/32": DECISION.direct });
    maps.disarm();
    assert.equal(marked(spec), 0);
  },
);

test("while the maps change, every packet goes as before or as behind the change", { skip }, (t) => {
  const { bpf, put, run } = kernel(TUN_INDEX);
  put({ "0.0.0.0/0": DECISION.proxy, "::/0": DECISION.proxy, "9.9.9.1/32": DECISION.direct });
  const seen = { known: new Set<number>(), fresh: new Set<number>(), changed: new Set<string>() };
  let looks = 0;
  const look = (): void => {
    seen.known.add(run({ to: "8.8.8.8" }).verdict);
    seen.fresh.add(run({ to: "8.8.8.8", ports: [10_000 + looks++, 443] }).verdict);
    for (const to of ["9.9.9.1", "9.9.9.2", "2001:db8::1"]) {
      const { verdict, mark } = run({ to });
      seen.changed.add(`${verdict} ${mark}`);
    }
  };
  for (const call of ["update", "updateAll", "delete"] as const) {
    const real = bpf[call].bind(bpf) as (...values: unknown[]) => unknown;
    t.mock.method(bpf, call, (...values: unknown[]) => {
      const answer = real(...values);
      look();
      return answer;
    });
  }
  put({ "9.9.9.1/32": null, "9.9.9.2/32": DECISION.direct, "2001:db8::1/128": DECISION.direct });
  put({ "9.9.9.2/32": null, "2001:db8::1/128": null });
  assert.ok(looks >= 6, `${looks} looks`);
  assert.deepEqual([...seen.known], [REDIRECTED]);
  assert.deepEqual([...seen.fresh], [REDIRECTED]);
  assert.deepEqual([...seen.changed].sort(), [`${PASS} ${DIRECT}`, `${REDIRECTED} 0`]);
});

test("redirect mode sends PROXY packets into the TUN, and lets tagged ones pass", { skip }, () => {
  const { put, run, maps } = kernel(TUN_INDEX);
  put({ "0.0.0.0/0": DECISION.proxy, "9.9.9.9/32": DECISION.direct });
  assert.equal(run({ to: "8.8.8.8" }).verdict, REDIRECTED);
  assert.deepEqual(run({ to: "9.9.9.9" }), { verdict: PASS, mark: DIRECT });
  assert.deepEqual(run({ to: "8.8.8.8", tags: [0x8100] }), { verdict: PASS, mark: 0 });
  assert.equal(maps.count("proxy").packets, 1);
});

test("in redirect mode a connection that goes on stays where it began", { skip }, () => {
  const { put, run } = kernel(TUN_INDEX);
  const direct = { verdict: PASS, mark: DIRECT };
  const proxied = { verdict: REDIRECTED, mark: 0 };
  put({ "0.0.0.0/0": DECISION.proxy, "::/0": DECISION.proxy });
  for (const [to, bits] of [
    ["9.9.9.9", 32],
    ["2001:db8::1", 128],
  ] as const) {
    const [first, second, third] = [
      [40_001, 443],
      [40_002, 443],
      [40_003, 443],
    ] as const;
    const goesOn = (ports: readonly [number, number]) => run({ to, ports, flags: ACK });
    assert.deepEqual(run({ to, ports: first }), proxied);
    put({ [`${to}/${bits}`]: DECISION.direct });
    assert.deepEqual(goesOn(first), proxied, "it is the TUN's");
    assert.deepEqual(run({ to, ports: second }), direct);
    put({ [`${to}/${bits}`]: null });
    assert.deepEqual(goesOn(second), direct, "connection tracking has it");
    assert.deepEqual(goesOn(first), proxied);
    assert.deepEqual(goesOn(third), proxied, "one that is not known goes by what is true now");
    put({ [`${to}/${bits}`]: DECISION.direct });
    assert.deepEqual(goesOn(third), proxied, "and stays there");
    assert.deepEqual(run({ to, ports: third, flags: SYN }), direct, "a new one by the same ports");
    assert.deepEqual(run({ to, ports: first, protocol: UDP }), direct);
  }
});

test("in redirect mode answers of a server in the LAN never enter the TUN", { skip }, () => {
  const { put, run, maps } = kernel(TUN_INDEX);
  put({ "0.0.0.0/0": DECISION.proxy, "::/0": DECISION.proxy });
  const [passed, proxied] = [PASS, REDIRECTED].map((verdict) => ({ verdict, mark: 0 }));
  for (const to of ["9.9.9.9", "2001:db8::1"]) {
    const ports = [443, 40_001] as const;
    const answer = (flags: number) => run({ to, ports, flags });
    assert.deepEqual(answer(SYN | ACK), passed);
    assert.deepEqual(answer(ACK), passed, "what follows");
    put({ [`${to}/${to.includes(":") ? 128 : 32}`]: DECISION.direct });
    assert.deepEqual(answer(ACK), passed, "of an older generation");
    put({ [`${to}/${to.includes(":") ? 128 : 32}`]: null });
    assert.deepEqual(answer(SYN), proxied, "a connection that begins here, by the same ports");
    assert.deepEqual(answer(ACK), proxied);
    assert.deepEqual(answer(SYN | ACK), passed, "the other way round again");
    assert.deepEqual(answer(ACK), passed);
  }
  assert.equal(maps.count("proxy").packets, 4);
  for (const [to, protocol, request, others] of [
    ["9.9.9.9", 1, 8, [0, 3, 11]],
    ["2001:db8::1", 58, 128, [1, 2, 3, 129]],
  ] as const) {
    assert.deepEqual(run({ to, protocol, type: request }), proxied);
    for (const type of others) assert.deepEqual(run({ to, protocol, type }), passed, `ICMP ${type}`);
    put({ [`${to}/${to.includes(":") ? 128 : 32}`]: DECISION.direct });
    assert.deepEqual(run({ to, protocol, type: others[0] }), { verdict: PASS, mark: DIRECT });
  }
});

test("a map that is full says so; the program without its maps is refused", { skip }, () => {
  const { put, bpf } = kernel();
  const many = Array.from(
    { length: 1001 },
    (_, at) => [`9.1.${at >> 8}.${at & 255}/32`, DECISION.direct] as const,
  );
  assert.throws(() => put(Object.fromEntries(many)), /ENOSPC/);
  const options = { directMark: DIRECT, proxyMark: PROXY, redirectTo: null };
  const none = { ipv4: 0, ipv6: 0, flows: 0, generation: 0, counters: 0 };
  assert.throws(
    () => bpf.loadClassifier(classifierProgram({ maps: none, ...options }), "weir_test"),
    /load the classifier/,
  );
});
