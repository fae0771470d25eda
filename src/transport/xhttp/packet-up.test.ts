import assert from "node:assert/strict";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { until } from "../../../test/support/until.ts";
import { PacketUpStream } from "./packet-up.ts";

interface Post {
  readonly body: string;
  readonly signal: AbortSignal;
  readonly answer: () => void;
  readonly refuse: () => void;
}

function open(maxPostBytes: number, minPostsIntervalMs = 0) {
  const down = new PassThrough();
  const posts: Post[] = [];
  const post = (body: Buffer, signal: AbortSignal): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const refuse = (): void => reject(new Error("refused"));
    posts.push({ body: String(body), signal, answer: resolve, refuse });
    return promise;
  };
  const stream = new PacketUpStream(down, post, { maxPostBytes, minPostsIntervalMs, mostPosts: 8 });
  return { down, posts, stream: stream.on("error", () => {}).resume() };
}

test("two long posts are under way at most, in order, and the end waits for all answers", async () => {
  const { posts, stream } = open(2);
  let isFinished = false;
  stream.on("finish", () => (isFinished = true));
  stream.end("aabbccddee");
  for (let answered = 0; answered < 4; answered++) {
    await until("as many as may are under way", () => posts.length === Math.min(5, answered + 2));
    await delay(5);
    assert.equal(posts.length, Math.min(5, answered + 2));
    posts[answered]?.answer();
  }
  await delay(5);
  assert.equal(isFinished, false);
  posts[4]?.answer();
  await once(stream, "finish");
  assert.equal(posts.map(({ body }) => body).join(""), "aabbccddee");
  stream.destroy();
});

test("eight short posts are under way at most, and none goes out behind the end of its stream", async () => {
  const { posts, stream } = open(100);
  for (let count = 1; count <= 8; count++) {
    stream.write("x");
    await until("it is under way", () => posts.length === count);
  }
  stream.write("one more");
  await delay(5);
  assert.equal(posts.length, 8);
  posts[3]?.answer();
  await until("the next one is", () => posts.length === 9);
  stream.write("another");
  await delay(5);
  const gone = once(stream, "close");
  stream.destroy();
  await gone;
  assert.ok(posts.every(({ signal }) => signal.aborted));
  posts[0]?.answer();
  await delay(5);
  assert.equal(posts.length, 9);
});

test("what is written within the interval of posts shares one, and the writer's memory is free", async () => {
  const { posts, stream } = open(100, 40);
  const memory = Buffer.from("first");
  stream.write(memory, () => memory.fill("x"));
  for (const text of ["b", "c", "d"]) stream.write(text);
  assert.equal(posts.length, 1);
  await until("the next one is under way", () => posts.length === 2);
  assert.deepEqual([posts[0]?.body, posts[1]?.body], ["first", "bcd"]);
  stream.destroy();
});

test("a refused post ends the stream, unless the server has given its answer", async () => {
  const broken = open(10);
  const failed = once(broken.stream, "error");
  broken.stream.write("x");
  await until("it is under way", () => broken.posts.length === 1);
  broken.posts[0]?.refuse();
  assert.equal(String((await failed)[0]), "Error: refused");
  const { down, posts, stream } = open(10);
  const closed = once(stream, "close");
  stream.write("x");
  await until("it is under way", () => posts.length === 1);
  posts[0]?.refuse();
  down.end("the answer");
  await closed;
  assert.equal(stream.errored, null);
});
