/** How a running weir is asked for an upgrade: a Unix socket in the home directory, for its own user and root. */
import { chmodSync, existsSync, lstatSync, unlinkSync } from "node:fs";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { isAbsolute, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import * as z from "zod";
import { errnoOf, messageOf } from "#core/errors.ts";
import { descriptorOf } from "#core/handover.ts";
import type { Log } from "#core/log.ts";
import { openHandover, type Handover } from "#platform/handover.ts";

const NAME = "weir-upgrade.sock";
const MODE = 0o600;
const HEAD_MS = 5_000;
/** One is worked on at a time; others learn that at once. */
const MOST_ASKING = 16;
const MOST_LINE = 8192;
/** How long a process may take from where one listens no more to where the next one does. */
const CHANGES_HANDS_MS = 2_000;
const ASK_AGAIN_MS = 50;
/** Of a Unix socket whose other side has not read what it was sent. */
const UNREAD: ReadonlySet<string> = new Set(["ECONNRESET", "ECONNREFUSED", "EPIPE"]);

const request = z.object({
  /** An executable, by its absolute path: who asks may be in another folder. Null: the same command once more. */
  to: z.string().max(4096).refine(isAbsolute, "expected an absolute path").nullable(),
  drainMs: z.number().int().min(0).max(86_400_000),
});
export type UpgradeRequest = z.infer<typeof request>;

const answer = z.union([
  z.object({ done: z.literal(true), pid: z.number(), connections: z.number(), drainMs: z.number() }),
  z.object({ done: z.literal(false), reason: z.string() }),
]);
export type UpgradeAnswer = z.infer<typeof answer>;

type OnRequest = (request: UpgradeRequest) => Promise<UpgradeAnswer>;

export function requestPath(home: string): string {
  return join(home, NAME);
}

/** Listens in `home`; does nothing but say so where it cannot. `on` never rejects. */
export async function openRequests(home: string, on: OnRequest, log: Log): Promise<Disposable> {
  const handover = existsSync(home) ? openHandover() : null; // the built-in configuration makes no folder
  if (handover === null) return { [Symbol.dispose]() {} };
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    void serve(socket, handover, on);
  });
  server.maxConnections = MOST_ASKING;
  const path = requestPath(home);
  try {
    await listen(server, path);
    server.on("error", (error) => log.warning(`${path}: ${messageOf(error)}`));
    server.unref();
  } catch (error) {
    log.info(`weir upgrade cannot reach this process: ${messageOf(error)}`);
  }
  return { [Symbol.dispose]: () => void server.close() };
}

/**
 * The answer of the weir that runs in `home`. Rejects where there is none, or it does not answer. What is asked while one
 * process takes over from another is asked again: the kernel resets a connection, or refuses it, only where no process has
 * read from it.
 */
export async function askForUpgrade(home: string, asked: UpgradeRequest): Promise<UpgradeAnswer> {
  const untilMs = performance.now() + CHANGES_HANDS_MS;
  for (let wasThere = false; ;) {
    try {
      return await askOnce(home, asked);
    } catch (error) {
      const code = errnoOf(error) ?? "";
      wasThere ||= UNREAD.has(code);
      const isBetween = wasThere && (UNREAD.has(code) || code === "ENOENT");
      if (!isBetween || performance.now() > untilMs) throw error;
    }
    await setTimeout(ASK_AGAIN_MS);
  }
}

/** The process that listens in `home`. Null: none, or this system does not say. */
export async function runningIn(home: string): Promise<number | null> {
  const handover = openHandover();
  if (handover === null) return null;
  const socket = connect(requestPath(home));
  try {
    await once(socket, "connect");
    return handover.peerOf(descriptorOf(socket)).pid;
  } catch {
    return null;
  } finally {
    socket.destroy();
  }
}

async function askOnce(home: string, asked: UpgradeRequest): Promise<UpgradeAnswer> {
  const socket = connect(requestPath(home)).setEncoding("utf8");
  try {
    await once(socket, "connect");
    socket.write(`${JSON.stringify(asked)}\n`);
    let text = "";
    for await (const chunk of socket) text += chunk;
    if (text === "") throw new Error("the weir that runs has ended without an answer");
    return answer.parse(JSON.parse(text));
  } finally {
    socket.destroy();
  }
}

async function listen(server: Server, path: string): Promise<void> {
  try {
    await bind(server, path);
  } catch (error) {
    if (errnoOf(error) !== "EADDRINUSE") throw error;
    // A connection to a file is refused as one to a dead socket is.
    if (!lstatSync(path).isSocket()) throw new Error(`${path} exists and is no socket`, { cause: error });
    if (await isAlive(path)) throw error;
    unlinkSync(path); // of a process that was killed
    await bind(server, path);
  }
}

async function bind(server: Server, path: string): Promise<void> {
  const before = process.umask(0o777 & ~MODE); // bind(2) happens before the next line runs
  const listening = once(server, "listening");
  server.listen(path);
  process.umask(before);
  await listening;
  chmodSync(path, MODE);
}

async function isAlive(path: string): Promise<boolean> {
  const probe = connect(path);
  try {
    await once(probe, "connect");
    return true;
  } catch (error) {
    return errnoOf(error) !== "ECONNREFUSED";
  } finally {
    probe.destroy();
  }
}

async function serve(socket: Socket, handover: Handover, on: OnRequest): Promise<void> {
  const say = (said: UpgradeAnswer): void => void socket.end(`${JSON.stringify(said)}\n`);
  try {
    const { uid } = handover.peerOf(descriptorOf(socket));
    if (uid !== 0 && uid !== process.getuid?.())
      return say({ done: false, reason: `user ${uid} may not ask for an upgrade` });
    say(await on(request.parse(JSON.parse(await lineOf(socket)))));
  } catch (error) {
    say({ done: false, reason: messageOf(error) });
  }
}

async function lineOf(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8").setTimeout(HEAD_MS, () => socket.destroy(new Error("no request has come")));
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += chunk;
    if (text.includes("\n") || text.length > MOST_LINE) break;
  }
  socket.setTimeout(0);
  const [line = "", rest] = text.split("\n");
  if (rest === undefined) throw new Error("a request is one line");
  return line;
}
