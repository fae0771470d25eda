import assert from "node:assert/strict";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { until } from "../../../test/support/until.ts";
import { PacketUpStream } from "./packet-up.ts";

interface Post {
  readonly body: string;
  readonly answer: () => void;
  readonly refuse: () => void;
}

function open(maxPostBytes: number, minPostsIntervalMs = 0) {
  const down = new PassThrough();
  const posts: Post[] = [];
  const post = (body: Buffer): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    posts.push({ body: String(body), answer: resolve, refuse: () => reject(new Error("refused")) });
    return promise;
  };
  const stream = new PacketUpStream(down, post, { maxPostBytes, minPostsIntervalMs });
  return { down, posts, stream: stream.on("error", () => {}).resume() };
}

test("eight posts are under way at most, in order, and the end waits for all answers", async () => {
  const { posts, stream } = open(2);
  let isFinished = false;
  stream.on("finish", () => (isFinished = true));
  stream.end("aabbccddeeffgghhiijj");
  await until("as many as may are under way", () => posts.length === 8);
  await turn();
  assert.equal(posts.length, 8);
  posts[3]?.answer();
  await until("the next one is", () => posts.length === 9);
  for (const { answer } of posts) answer();
  await until("the last one is", () => posts.length === 10);
  await turn();
  assert.equal(isFinished, false);
  posts[9]?.answer();
  await once(stream, "finish");
  assert.equal(posts.map(({ body }) => body).join(""), "aabbccddeeffgghhiijj");
  stream.destroy();
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
