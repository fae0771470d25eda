/** The file of a store that is written behind the other one, or in a thread of its own at the same time. */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { UndecidedError } from "./cut-log.ts";
import { KeyValueFile, type SealedChange } from "./kv.ts";
import { errorOf, failureOf, type StoreFailure, type Link } from "./thread-messages.ts";

export type FileWork =
  | {
      readonly kind: "commit";
      readonly changes: readonly SealedChange[];
      readonly generation: number;
      readonly nowMs: number;
    }
  | { readonly kind: "fold"; readonly leastCommits: number }
  | { readonly kind: "compact" }
  | { readonly kind: "close" };

/** One piece of work; exactly one of its methods is called, once. */
export interface StartedBackup {
  /** Returns when it is done, and throws what `KeyValueFile` does. */
  end(): void;
  /** It shall not be done; true where it is already. Throws `UndecidedError`. */
  revoke(): boolean;
}

/** One piece of work after the other. */
export interface SecondFile {
  begin(work: FileWork): StartedBackup;
}

/** Nothing is done before its end is waited for. */
export function inThisThread(file: KeyValueFile): SecondFile {
  return { begin: (work) => ({ end: () => perform(file, work), revoke: () => false }) };
}

function perform(file: KeyValueFile, work: FileWork): void {
  if (work.kind === "commit") file.commit(work.changes, work.generation, work.nowMs);
  else if (work.kind === "fold") file.checkpointWal(work.leastCommits);
  else if (work.kind === "compact") file.compact();
  else file[Symbol.dispose]();
}

export const LINK_BYTES = 8;
const ASKED = 0;
const ANSWERED = 1;

interface Handed {
  readonly kind: "open";
  readonly root: Uint8Array;
}

type Answer = { readonly failure: StoreFailure | null };

/**
 * Hands the file over to the thread at the other end: closes it here and has it opened there. Both threads wait for one
 * another without an event loop, so a third one must watch whether they live.
 */
export function inThreadOf(link: Link, file: KeyValueFile): SecondFile {
  const words = new Int32Array(link.words);
  const begin = (work: FileWork | Handed): StartedBackup => {
    link.port.postMessage(work);
    const number = Atomics.add(words, ASKED, 1) + 1;
    Atomics.notify(words, ASKED);
    const end = (): void => {
      while (Atomics.load(words, ANSWERED) !== number) Atomics.wait(words, ANSWERED, number - 1);
      const { failure } = received<Answer>(link.port);
      if (failure !== null) throw errorOf(failure);
    };
    return { end, revoke: () => isDone(end) };
  };
  const { rootBlob } = file;
  file.abandon();
  begin({ kind: "open", root: rootBlob }).end();
  return { begin };
}

/** What must have been sent, by the words. */
function received<T>(port: MessagePort): T {
  const received = receiveMessageOnPort(port);
  if (received === undefined) throw new Error("a thread was called and sent nothing");
  return received.message;
}

function isDone(end: () => void): boolean {
  try {
    end();
    return true;
  } catch (error) {
    if (error instanceof UndecidedError) throw error;
    return false; // then nothing has changed
  }
}

/** The life of the thread at the other end; returns when its file is closed. */
export function serveLink(link: Link, path: string, parts: readonly string[]): void {
  const words = new Int32Array(link.words);
  let file: KeyValueFile | null = null;
  for (let served = 0, isOver = false; !isOver; served++) {
    while (Atomics.load(words, ASKED) === served) Atomics.wait(words, ASKED, served);
    const work = received<FileWork | Handed>(link.port);
    let failure: StoreFailure | null = null;
    try {
      if (work.kind === "open") file = KeyValueFile.resume(path, parts, work.root);
      else if (file === null) throw new TypeError("a file is written to before it was opened");
      else perform(file, work);
    } catch (error) {
      failure = failureOf(error);
    }
    isOver = work.kind === "close";
    link.port.postMessage({ failure } satisfies Answer);
    Atomics.add(words, ANSWERED, 1);
    Atomics.notify(words, ANSWERED);
  }
}
