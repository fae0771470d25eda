import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { messageOf, tlsClientHello } from "../../../test/support/client-hello.ts";
import { cryptoFrame, initialPacket, QUIC_V1, QUIC_V2 } from "../../../test/support/quic-initial.ts";
import { runs } from "../../../test/support/runs.ts";
import { quic } from "./quic.ts";

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll(/\s/g, ""), "hex");

/** RFC 9001, appendix A.2: the protected packet. */
const RFC_9001 = bytesOf(`
  c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9bd8bab936b47d92ec356c0bab7df5976d27cd
  449f63300099f3991c260ec4c60d17b31f8429157bb35a1282a643a8d2262cad67500cadb8e7378c8eb7539ec4d4905fed1bee1fc8aafba1
  7c750e2c7ace01e6005f80fcb7df621230c83711b39343fa028cea7f7fb5ff89eac2308249a02252155e2347b63d58c5457afd84d05dfffd
  b20392844ae812154682e9cf012f9021a6f0be17ddd0c2084dce25ff9b06cde535d0f920a2db1bf362c23e596d11a4f5a6cf3948838a3aec
  4e15daf8500a6ef69ec4e3feb6b1d98e610ac8b7ec3faf6ad760b7bad1db4ba3485e8a94dc250ae3fdb41ed15fb6a8e5eba0fc3dd60bc8e3
  0c5c4287e53805db059ae0648db2f64264ed5e39be2e20d82df566da8dd5998ccabdae053060ae6c7b4378e846d29f37ed7b4ea9ec5d82e7
  961b7f25a9323851f681d582363aa5f89937f5a67258bf63ad6f1a0b1d96dbd4faddfcefc5266ba6611722395c906556be52afe3f565636a
  d1b17d508b73d8743eeb524be22b3dcbc2c7468d54119c7468449a13d8e3b95811a198f3491de3e7fe942b330407abf82a4ed7c1b311663a
  c69890f4157015853d91e923037c227a33cdd5ec281ca3f79c44546b9d90ca00f064c99e3dd97911d39fe9c5d0b23a229a234cb36186c481
  9e8b9c5927726632291d6a418211cc2962e20fe47feb3edf330f2c603a9d48c0fcb5699dbfe5896425c5bac4aee82e57a85aaf4e2513e4f0
  5796b07ba2ee47d80506f8d2c25e50fd14de71e6c418559302f939b0e1abd576f279c4b2e0feb85c1f28ff18f58891ffef132eef2fa09346
  aee33c28eb130ff28f5b766953334113211996d20011a198e3fc433f9f2541010ae17c1bf202580f6047472fb36857fe843b19f5984009dd
  c324044e847a4f4a0ab34f719595de37252d6235365e9b84392b061085349d73203a4a13e96f5432ec0fd4a1ee65accdd5e3904df54c1da5
  10b0ff20dcc0c77fcb2c0e0eb605cb0504db87632cf3d8b4dae6e705769d1de354270123cb11450efc60ac47683d7b8d0f811365565fd98c
  4c8eb936bcab8d069fc33bd801b03adea2e1fbc5aa463d08ca19896d2bf59a071b851e6c239052172f296bfb5e72404790a2181014f3b94a
  4e97d117b438130368cc39dbb2d198065ae3986547926cd2162f40a29f0c3c8745c0f50fba3852e566d44575c29d39a03f0cda721984b6f4
  40591f355e12d439ff150aab7613499dbd49adabc8676eef023b15b65bfc5ca06948109f23f350db82123535eb8a7433bdabcb909271a6ec
  bcb58b936a88cd4e8f2e6ff5800175f113253d8fa9ca8885c2f552e657dc603f252e1a8e308f76f0be79e2fb8f5d5fbbe2e30ecadd220723
  c8c0aea8078cdfcb3868263ff8f0940054da48781893a7e49ad5aff4af300cd804a6b6279ab3ff3afb64491c85194aab760d58a606654f9f
  4400e8b38591356fbf6425aca26dc85244259ff2b19c41b9f96f3ca9ec1dde434da7d2d392b905ddf3d1f9af93d1af5950bd493f5aa731b4
  056df31bd267b6b90a079831aaf579be0a39013137aac6d404f518cfd46840647e78bfe706ca4cf5e9c5453e9f7cfd2b8b4c8d169a44e55c
  88d4a9a7f9474241e221af44860018ab0856972e194cd934
`);

/** RFC 9369, appendix A.2: the same in version 2. */
const RFC_9369 = bytesOf(`
  d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485dd04de806071bf03dceebfa162e75d6c96058bdbfb127cdf
  cbf903388e99ad049f9a3dd4425ae4d0992cfff18ecf0fdb5a842d09747052f17ac2053d21f57c5d250f2c4f0e0202b70785b7946e992e58
  a59ac52dea6774d4f03b55545243cf1a12834e3f249a78d395e0d18f4d766004f1a2674802a747eaa901c3f10cda5500cb9122faa9f1df66
  c392079a1b40f0de1c6054196a11cbea40afb6ef5253cd6818f6625efce3b6def6ba7e4b37a40f7732e093daa7d52190935b8da58976ff33
  12ae50b187c1433c0f028edcc4c2838b6a9bfc226ca4b4530e7a4ccee1bfa2a3d396ae5a3fb512384b2fdd851f784a65e03f2c4fbe11a53c
  7777c023462239dd6f7521a3f6c7d5dd3ec9b3f233773d4b46d23cc375eb198c63301c21801f6520bcfb7966fc49b393f0061d974a2706df
  8c4a9449f11d7f3d2dcbb90c6b877045636e7c0c0fe4eb0f697545460c806910d2c355f1d253bc9d2452aaa549e27a1fac7cf4ed77f322e8
  fa894b6a83810a34b361901751a6f5eb65a0326e07de7c1216ccce2d0193f958bb3850a833f7ae432b65bc5a53975c155aa4bcb4f7b2c4e5
  4df16efaf6ddea94e2c50b4cd1dfe06017e0e9d02900cffe1935e0491d77ffb4fdf85290fdd893d577b1131a610ef6a5c32b2ee0293617a3
  7cbb08b847741c3b8017c25ca9052ca1079d8b78aebd47876d330a30f6a8c6d61dd1ab5589329de714d19d61370f8149748c72f132f0fc99
  f34d766c6938597040d8f9e2bb522ff99c63a344d6a2ae8aa8e51b7b90a4a806105fcbca31506c446151adfeceb51b91abfe43960977c874
  71cf9ad4074d30e10d6a7f03c63bd5d4317f68ff325ba3bd80bf4dc8b52a0ba031758022eb025cdd770b44d6d6cf0670f4e990b22347a7db
  848265e3e5eb72dfe8299ad7481a408322cac55786e52f633b2fb6b614eaed18d703dd84045a274ae8bfa73379661388d6991fe39b0d93de
  bb41700b41f90a15c4d526250235ddcd6776fc77bc97e7a417ebcb31600d01e57f32162a8560cacc7e27a096d37a1a86952ec71bd89a3e9a
  30a2a26162984d7740f81193e8238e61f6b5b984d4d3dfa033c1bb7e4f0037febf406d91c0dccf32acf423cfa1e7071010d3f270121b493c
  e85054ef58bada42310138fe081adb04e2bd901f2f13458b3d6758158197107c14ebb193230cd1157380aa79cae1374a7c1e5bbcb80ee23e
  06ebfde206bfb0fcbc0edc4ebec309661bdd908d532eb0c6adc38b7ca7331dce8dfce39ab71e7c32d318d136b6100671a1ae6a6600e3899f
  31f0eed19e3417d134b90c9058f8632c798d4490da4987307cba922d61c39805d072b589bd52fdf1e86215c2d54e6670e07383a27bbffb5a
  ddf47d66aa85a0c6f9f32e59d85a44dd5d3b22dc2be80919b490437ae4f36a0ae55edf1d0b5cb4e9a3ecabee93dfc6e38d209d0fa6536d27
  a5d6fbb17641cde27525d61093f1b28072d111b2b4ae5f89d5974ee12e5cf7d5da4d6a31123041f33e61407e76cffcdcfd7e19ba58cf4b53
  6f4c4938ae79324dc402894b44faf8afbab35282ab659d13c93f70412e85cb199a37ddec600545473cfb5a05e08d0b209973b2172b4d21fb
  69745a262ccde96ba18b2faa745b6fe189cf772a9f84cbfc
`);

const feedAll = (...datagrams: readonly Uint8Array[]) => {
  const probe = quic.open();
  return datagrams.map((datagram) => probe.feed(datagram));
};

test("the published client Initials name example.com", () => {
  assert.deepEqual([RFC_9001.length, RFC_9369.length], [1200, 1200]);
  assert.deepEqual(feedAll(RFC_9001), [{ host: "example.com" }]);
  assert.deepEqual(feedAll(RFC_9369), [{ host: "example.com" }]);
});

test("a changed bit anywhere is noticed", () => {
  for (let at = 0; at < RFC_9001.length; at += 7) {
    const bad = Buffer.from(RFC_9001);
    bad[at] = (bad[at] as number) ^ 1;
    assert.deepEqual(feedAll(bad), ["other"], `byte ${at}`);
  }
});

test("no truncation is taken for a QUIC Initial", () => {
  for (let size = 0; size < RFC_9001.length; size++)
    assert.deepEqual(feedAll(RFC_9001.subarray(0, size)), ["other"], `${size} bytes`);
});

const padded = (...frames: readonly Buffer[]): Buffer =>
  Buffer.concat([...frames, Buffer.alloc(Math.max(0, 1100 - Buffer.concat(frames).length))]);

for (const version of [QUIC_V1, QUIC_V2])
  test(`CRYPTO frames in any order over two datagrams, version ${version.number}`, async () => {
    const hello = messageOf(await tlsClientHello("two.datagrams.example"));
    const cut = [0, 17, 60, 150, 190, hello.length];
    const frames = cut.slice(1).map((to, at) => {
      const from = cut[at] as number;
      return cryptoFrame(from, hello.subarray(from, to));
    });
    const [a, b, c, d, e] = frames as [Buffer, Buffer, Buffer, Buffer, Buffer];
    const ping = Buffer.from([1]);
    const ack = Buffer.from([2, 0, 0, 0, 0]);
    const ackEcn = Buffer.from([3, 5, 0, 1, 0, 2, 2, 0, 0, 0]);
    const first = initialPacket(padded(ping, d, b), { version, number: 0 });
    const second = initialPacket(padded(e, ack, a, ackEcn, d, c), {
      version,
      number: 1,
      token: Buffer.alloc(70),
    });
    assert.deepEqual(feedAll(first, second), ["more", { host: "two.datagrams.example" }]);
    assert.deepEqual(feedAll(second, first), ["more", { host: "two.datagrams.example" }]);
  });

test("packets that share a datagram", async () => {
  const hello = messageOf(await tlsClientHello("coalesced.example"));
  const one = initialPacket(cryptoFrame(0, hello.subarray(0, 100)), { number: 7 });
  const two = initialPacket(cryptoFrame(100, hello.subarray(100)), { number: 300 });
  const zeroRtt = Buffer.concat([
    Buffer.from("d000000001088394c8f03e51570800", "hex"),
    Buffer.from([4, 1, 2, 3, 4]),
  ]);
  const short = Buffer.from([0x40, 1, 2, 3]);
  assert.deepEqual(feedAll(Buffer.concat([one, zeroRtt, two, short])), [{ host: "coalesced.example" }]);
});

test("a packet of another connection is not mixed in", async () => {
  const hello = messageOf(await tlsClientHello("mine.example"));
  const other = messageOf(await tlsClientHello("other.example"));
  const first = initialPacket(cryptoFrame(0, hello.subarray(0, 100)));
  const stray = initialPacket(cryptoFrame(0, other), {
    connectionId: Buffer.from("0102030405060708", "hex"),
  });
  const last = initialPacket(cryptoFrame(100, hello.subarray(100)), { number: 1 });
  assert.deepEqual(feedAll(first, stray, last), ["more", "more", { host: "mine.example" }]);
});

test("what never becomes a hello ends: a bounded number of datagrams, islands, bytes", () => {
  const probe = quic.open();
  let verdict = probe.feed(initialPacket(cryptoFrame(5, Buffer.alloc(10))));
  for (let number = 1; verdict === "more"; number++) {
    assert.ok(number < 20);
    const islands = Array.from({ length: 100 }, (_, at) => cryptoFrame(100 + at * 9, Buffer.alloc(3)));
    verdict = probe.feed(initialPacket(Buffer.concat(islands), { number }));
  }
  assert.equal(verdict, "other");
  const notHello = initialPacket(cryptoFrame(0, Buffer.from([2, 0, 0, 1, 0])));
  assert.deepEqual(feedAll(notHello), ["other"]);
  const tooLong = initialPacket(cryptoFrame(0, Buffer.from([1, 0xff, 0xff, 0xff])));
  assert.deepEqual(feedAll(tooLong), ["other"]);
});

test("thousands of pieces cost no more than a few hundred", async () => {
  const hello = messageOf(await tlsClientHello("pieces.example"));
  const pieces = Array.from(hello, (byte, at) => cryptoFrame(at, Buffer.from([byte]))).reverse();
  assert.ok(pieces.length > 512 + 64, `${pieces.length} pieces`);
  assert.deepEqual(feedAll(initialPacket(Buffer.concat(pieces))), ["more"]);
  const few = pieces.slice(-200);
  const rest = cryptoFrame(200, hello.subarray(200));
  assert.deepEqual(feedAll(initialPacket(Buffer.concat([...few, rest]))), [{ host: "pieces.example" }]);
});

test("random bytes, behind a genuine beginning and inside a genuine packet", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (noise) => {
      const payload = Buffer.concat([Buffer.from(noise), Buffer.alloc(20)]);
      for (const bytes of [noise, Buffer.concat([RFC_9001.subarray(0, 18), noise]), initialPacket(payload)]) {
        const [verdict] = feedAll(bytes);
        assert.ok(verdict === "more" || verdict === "other" || typeof verdict === "object");
      }
    }),
    { numRuns: runs(300) },
  );
});
