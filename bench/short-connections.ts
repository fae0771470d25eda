/**
 * Connections that carry one byte there and back, so many at a time, by one thread over epoll: what asks costs less than
 * what is measured. Each ends in order: this side first, and it counts once the other has ended, too.
 */
import type { Ip } from "#core/session.ts";
import { bytesOfIp, parseIp } from "#net/address/ip.ts";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { encodeSockaddr } from "#platform/linux/sockaddr.ts";
import { openEndCalls } from "./end-calls.ts";
import { nameAt, type SubjectAddress } from "./subject-address.ts";

/** A lost connection holds the others up for no longer than this. */
const TIMEOUT_MS = 5_000;
const EINPROGRESS = -115;

/** What is said, and how many bytes answer it. */
interface Step {
  readonly words: () => Uint8Array;
  readonly answerBytes: number;
}

const stepOf = (words: Uint8Array, answerBytes: number): Step => ({ words: () => words, answerBytes });

const PING = stepOf(Buffer.from("E"), 1);

/** Of this process; from anywhere, so that no other has asked for the same just before. */
let newest = Math.floor(Math.random() * 2 ** 24);

/** The next address, into four bytes. */
function renew(address: Uint8Array): void {
  newest = (newest + 1) % 2 ** 24;
  address.set([127, newest >> 16, (newest >> 8) & 255, newest & 255]);
}

/** `host` is where the door leads to. */
function stepsTo({ to }: SubjectAddress, host: string): readonly Step[] {
  if (to === null) return [PING];
  const address = bytesOfIp(host as Ip).slice();
  const next = (): void => {
    if (to.isNew === true) renew(address);
  };
  if (to.by === "connect") {
    const words = (): Uint8Array => {
      next();
      const name = `${address.join(".")}:${to.port}`;
      return Buffer.from(`CONNECT ${name} HTTP/1.1\r\nHost: ${name}\r\n\r\n`);
    };
    return [{ words, answerBytes: 1 }, PING]; // the answer is short and comes as one
  }
  if (to.names !== undefined) return stepsToNames(to.names, to.port);
  const request = Uint8Array.of(5, 1, 0, 1, ...address, to.port >> 8, to.port & 255);
  const words = (): Uint8Array => {
    next();
    request.set(address, 4);
    return request;
  };
  return [stepOf(Uint8Array.of(5, 1, 0), 2), { words, answerBytes: 10 }, PING];
}

function stepsToNames(count: number, port: number): readonly Step[] {
  const requests = Array.from({ length: count }, (_, at) => {
    const name = nameAt(at);
    return Buffer.concat([
      Uint8Array.of(5, 1, 0, 3, name.length),
      Buffer.from(name),
      Uint8Array.of(port >> 8, port & 255),
    ]);
  });
  const words = (): Uint8Array => requests[newest++ % count] as Uint8Array;
  return [stepOf(Uint8Array.of(5, 1, 0), 2), { words, answerBytes: 10 }, PING];
}

export interface ShortConnections {
  readonly amount: number;
  readonly seconds: number;
}

export function makeShortConnections(
  door: SubjectAddress,
  host: string,
  { parallel, ms }: { readonly parallel: number; readonly ms: number },
): ShortConnections {
  const calls = openEndCalls();
  const epoll = calls.openEpoll();
  const name = new Uint8Array(calls.address.length);
  const address = bytesOfIp(parseIp(door.host ?? host) as Ip);
  const nameBytes = encodeSockaddr(name, { address, port: door.port });
  const family = address.length === 4 ? 4 : 6;
  const steps = stepsTo(door, host);
  /** By descriptor: the step whose answer is waited for, how much of it is missing, and -1 before the first. */
  const at = new Int32Array(1 << 16);
  const missing = new Int32Array(1 << 16);
  const startMs = performance.now();
  let lastMs = startMs;
  let [amount, going] = [0, 0];

  function start(): void {
    const fd = calls.open(family);
    calls.address.set(name);
    const outcome = calls.connect(fd, nameBytes);
    if (outcome !== 0 && outcome !== EINPROGRESS) throw new Error(`connect() failed: ${outcome}`);
    at[fd] = -1;
    missing[fd] = 0;
    calls.watch(epoll, fd, fd);
    going++;
  }

  function say(fd: number): void {
    at[fd] = (at[fd] as number) + 1;
    const step = steps[at[fd]];
    if (step === undefined) return void calls.endWriting(fd);
    missing[fd] = step.answerBytes;
    const words = step.words();
    calls.buffer.set(words);
    calls.send(fd, words.length);
  }

  function receive(fd: number): void {
    const bytes = calls.receive(fd, calls.buffer.length);
    if (bytes === EAGAIN || bytes === EINTR) return;
    if (bytes > 0) {
      missing[fd] = Math.max(0, (missing[fd] as number) - bytes);
      if (missing[fd] === 0) say(fd);
      return;
    }
    const isWhole = bytes === 0 && at[fd] === steps.length;
    calls.close(fd);
    going--;
    if (!isWhole) throw new Error(`a connection was lost after ${at[fd]} of ${steps.length} steps: ${bytes}`);
    amount++;
    lastMs = performance.now();
    if (lastMs - startMs < ms) start();
  }

  for (let opened = 0; opened < parallel; opened++) start();
  while (going > 0) {
    const count = calls.wait(epoll, TIMEOUT_MS);
    if (count === 0) throw new Error(`${going} connections never ended`);
    for (let event = 0; event < count; event++) {
      const fd = calls.dataAt(event);
      if (at[fd] === -1) say(fd);
      else receive(fd);
    }
  }
  calls.close(epoll);
  return { amount, seconds: (lastMs - startMs) / 1_000 };
}
