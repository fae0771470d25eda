import assert from "node:assert/strict";
import { once } from "node:events";
import { duplexPair } from "node:stream";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ProtocolError } from "#core/errors.ts";
import { CodecStream, type StreamCodec } from "./codec-stream.ts";
import { readHandshake } from "#net/listen/read-handshake.ts";

/** Opens with `<`, turns letters over, ends with `>`; `!` is a fault. */
function turnedOver(): StreamCodec {
  let opened = false;
  const flip = (text: string) =>
    text.replaceAll(/[a-z]/gi, (c) => (c < "a" ? c.toLowerCase() : c.toUpperCase()));
  return {
    seal(plain) {
      const text = `${opened ? "" : "<"}${flip(plain.toString())}`;
      opened = true;
      return Buffer.from(text);
    },
    sealEnd: () => Buffer.from(opened ? ">" : "<>"),
    open(wire, emit) {
      const text = wire.toString();
      if (text.includes("!")) throw new ProtocolError("a fault");
      const [body = "", ...rest] = text.replaceAll("<", "").split(">");
      if (body !== "") emit(Buffer.from(flip(body)));
      if (rest.length > 0) emit(null);
    },
    openEnd() {},
  };
}

describe("codec stream", () => {
  test("both directions, and the ends by their marks", async () => {
    const [near, far] = duplexPair();
    const stream = new CodecStream(near, turnedOver());
    stream.end("Hello");
    const got: string[] = [];
    far.on("data", (bytes: Buffer) => got.push(bytes.toString()));
    await once(far, "end");
    assert.equal(got.join(""), "<hELLO>");
    const closed = once(stream, "close");
    stream.resume();
    far.end("bye>ignored");
    const [reply] = (await once(stream, "data")) as [Buffer];
    assert.equal(reply.toString(), "BYE");
    await closed;
  });

  test("over a wire that has closed already it closes, too, and says why", async () => {
    const [near] = duplexPair();
    near.destroy();
    await once(near, "close");
    const stream = new CodecStream(near, turnedOver());
    const [error] = await once(stream, "error");
    assert.match(String(error), /closed before its end/);
    assert.equal(stream.destroyed, true);
  });

  test("the codec is closed once, by the end and by a destruction", async () => {
    for (const end of ["end", "destroy", "fault"] as const) {
      const [near, far] = duplexPair();
      let closings = 0;
      const stream = new CodecStream(near, { ...turnedOver(), close: () => void closings++ });
      const closed = new Promise((resolve) => stream.once("close", resolve));
      stream.on("error", () => {}).resume();
      far.on("error", () => {}).resume();
      if (end === "end") stream.end();
      else if (end === "destroy") stream.destroy();
      far.end(end === "fault" ? "!" : ">");
      await closed;
      assert.equal(closings, 1, end);
    }
  });

  test("an end that the handshake's reader was given with its last byte is an end", async () => {
    const [near, far] = duplexPair();
    far.end("h");
    await readHandshake(near, (arrived) => arrived.take(1), 10_000);
    await turn();
    assert.equal(near.readableEnded, true);
    const stream = new CodecStream(near, turnedOver());
    stream.resume();
    await once(stream, "end");
    stream.destroy();
    await assert.rejects(
      readHandshake(near, () => null, 10_000),
      ProtocolError,
    );
  });

  test("the opening goes alone where no data is written", async () => {
    const [near, far] = duplexPair();
    const stream = new CodecStream(near, turnedOver(), { openAfterMs: 1 });
    const [bytes] = (await once(far, "data")) as [Buffer];
    assert.equal(bytes.toString(), "<");
    stream.write("a");
    assert.equal(String(((await once(far, "data")) as [Buffer])[0]), "A");
    stream.destroy();
  });

  test("an unread stream holds the wire up", async () => {
    const [near, far] = duplexPair();
    const stream = new CodecStream(near, turnedOver());
    let taken = 0;
    while (taken < 100 && far.write("x".repeat(10_000))) taken++;
    await turn();
    for (let round = 0; round < 50; round++) {
      if (far.writableNeedDrain) break;
      far.write("x".repeat(10_000));
      await turn();
    }
    assert.equal(far.writableNeedDrain, true);
    stream.resume();
    await once(far, "drain");
    stream.destroy();
  });

  test("a fault destroys it; the wire goes with it, or is read on in silence", async () => {
    for (const discardOnFaultMs of [undefined, 10_000]) {
      const [near, far] = duplexPair();
      const stream = new CodecStream(
        near,
        turnedOver(),
        discardOnFaultMs === undefined ? {} : { discardOnFaultMs },
      );
      near.on("error", () => {});
      far.on("error", () => {});
      stream.resume();
      const failed = once(stream, "error") as Promise<[Error]>;
      far.write("!");
      assert.ok((await failed)[0] instanceof ProtocolError);
      await turn();
      assert.equal(near.destroyed, discardOnFaultMs === undefined);
      far.destroy();
      near.destroy();
    }
  });

  test("a wire that closes early is an error", async () => {
    const [near, far] = duplexPair();
    const stream = new CodecStream(near, turnedOver());
    stream.resume();
    const failed = once(stream, "error");
    near.destroy();
    far.destroy();
    await failed;
  });
});

describe("handshake", () => {
  test("what lies behind it stays in the stream, the end too", async () => {
    const [near, far] = duplexPair();
    far.end("abcdef");
    const got = await readHandshake(near, (arrived) => arrived.take(3), 10_000);
    assert.equal(got.toString(), "abc");
    const rest: Buffer[] = [];
    near.on("data", (bytes: Buffer) => rest.push(bytes)).resume();
    await once(near, "end");
    assert.equal(Buffer.concat(rest).toString(), "def");
  });

  test("an early end, a fault and the deadline reject", async () => {
    const [near, far] = duplexPair();
    far.end("ab");
    await assert.rejects(
      readHandshake(near, (arrived) => arrived.take(3), 10_000),
      /ended within the handshake/,
    );
    const [other, peer] = duplexPair();
    peer.write("x");
    const refuse = () => {
      throw new ProtocolError("no");
    };
    await assert.rejects(readHandshake(other, refuse, 10_000), /^ProtocolError: no$/);
    await assert.rejects(
      readHandshake(duplexPair()[0], () => null, 1),
      /took too long/,
    );
  });
});
