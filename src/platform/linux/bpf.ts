/** bpf(2) by its number: maps, one classifier program, its place on a device. Everything throws `SystemError`. */
import type * as Ffi from "node:ffi";
import { SystemError, type Libc } from "./libc.ts";
import { LITTLE_ENDIAN } from "./netlink/message.ts";
import { int32At } from "#lib/at.ts";

/** `perCpuArray`: every value is there once per possible CPU, each rounded up to 8 bytes. */
export type MapKind = "array" | "perCpuArray" | "lruHash" | "lpmTrie";

export interface MapShape {
  readonly kind: MapKind;
  readonly keyBytes: number;
  readonly valueBytes: number;
  readonly maxEntries: number;
}

/** What a test run of a program left behind. */
export interface TestRun {
  readonly verdict: number;
  readonly context: Uint8Array;
  /** Of one run, the mean of all. */
  readonly nanoseconds: number;
}

const MAP_KINDS: Record<MapKind, number> = { array: 2, perCpuArray: 6, lruHash: 9, lpmTrie: 11 };
const NO_PREALLOC = 1;
const COMMAND = {
  createMap: 0,
  lookUp: 1,
  update: 2,
  delete: 3,
  loadProgram: 5,
  testRun: 10,
  updateBatch: 26,
  createLink: 28,
} as const;
const SCHED_CLS = 3;
const TCX_INGRESS = 46;
/** By `process.arch`; `syscall` takes the number of the machine. */
const SYSCALL: Readonly<Record<string, number>> = { x64: 321, arm64: 280, riscv64: 280, loong64: 280 };
const ATTRIBUTE_BYTES = 152;
const LOG_BYTES = 256 * 1024;

const SIGNATURES = {
  syscall: { arguments: ["i64", "i32", "pointer", "u32"], return: "i32" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

export class Bpf {
  readonly #ffi: typeof Ffi;
  readonly #libc: Libc;
  readonly #library;
  readonly #errno: Int32Array;
  readonly #number: bigint;
  readonly #attribute = new DataView(new ArrayBuffer(ATTRIBUTE_BYTES));
  /** What the attributes point to must live until the call returns. */
  #lent: Uint8Array[] = [];

  constructor(ffi: typeof Ffi, libc: Libc) {
    this.#ffi = ffi;
    this.#libc = libc;
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#errno = new Int32Array(ffi.toArrayBuffer(this.#library.functions.__errno_location(), 4, false));
    this.#number = BigInt(SYSCALL[process.arch] ?? -1);
  }

  /** Answers with a descriptor, close-on-exec as all of bpf(2). */
  createMap({ kind, keyBytes, valueBytes, maxEntries }: MapShape): number {
    const flags = kind === "lpmTrie" ? NO_PREALLOC : 0;
    this.#numbers(0, [MAP_KINDS[kind], keyBytes, valueBytes, maxEntries, flags]);
    return this.#call(COMMAND.createMap, `create a ${kind} map of ${maxEntries}`);
  }

  update(map: number, key: Uint8Array, value: Uint8Array): void {
    this.#numbers(0, [map]);
    this.#lend(8, key);
    this.#lend(16, value);
    this.#call(COMMAND.update, "write to a map");
  }

  /** `count` keys and values, one behind the other. False: this kernel cannot (LPM tries before 5.6); nothing was written. */
  updateAll(map: number, keys: Uint8Array, values: Uint8Array, count: number): boolean {
    this.#lend(16, keys);
    this.#lend(24, values);
    this.#numbers(32, [count, map]);
    try {
      this.#call(COMMAND.updateBatch, `write ${count} entries to a map`);
    } catch (error) {
      if (error instanceof SystemError && (error.code === "EINVAL" || error.code === "ENOTSUP")) return false;
      throw error;
    }
    return true;
  }

  /** False: it was not there. */
  delete(map: number, key: Uint8Array): boolean {
    this.#numbers(0, [map]);
    this.#lend(8, key);
    try {
      this.#call(COMMAND.delete, "delete from a map");
    } catch (error) {
      if (error instanceof SystemError && error.code === "ENOENT") return false;
      throw error;
    }
    return true;
  }

  /** Fills `value`; of a per-CPU map with the values of all possible CPUs. False: it is not there. */
  lookUp(map: number, key: Uint8Array, value: Uint8Array): boolean {
    this.#numbers(0, [map]);
    this.#lend(8, key);
    this.#lend(16, value);
    try {
      this.#call(COMMAND.lookUp, "read from a map");
    } catch (error) {
      if (error instanceof SystemError && error.code === "ENOENT") return false;
      throw error;
    }
    return true;
  }

  /** Throws with the last lines of what the verifier says. */
  loadClassifier(program: Uint8Array, name: string): number {
    try {
      return this.#load(program, name, null);
    } catch (error) {
      const log = new Uint8Array(LOG_BYTES);
      try {
        return this.#load(program, name, log);
      } catch {
        const text = Buffer.from(log.subarray(0, Math.max(0, log.indexOf(0)))).toString("latin1");
        if (text === "") throw error;
        throw new Error(`load the classifier: ${text.trimEnd().split("\n").slice(-4).join("; ")}`, {
          cause: error,
        });
      }
    }
  }

  /** Puts the program at the ingress of a device, behind what is there; it leaves when the descriptor is closed. */
  attachIngress(program: number, device: number): number {
    this.#numbers(0, [program, device, TCX_INGRESS, 0]);
    return this.#call(COMMAND.createLink, `attach the classifier to device ${device}`);
  }

  /** Runs a program over a frame without a network. `context` is a `struct __sk_buff`. */
  testRun(program: number, frame: Uint8Array, context: Uint8Array, repeat: number): TestRun {
    const after = new Uint8Array(context.length);
    this.#numbers(0, [program, 0, frame.length, 0]);
    this.#lend(16, frame);
    this.#numbers(32, [repeat, 0, context.length, context.length]);
    this.#lend(48, context);
    this.#lend(56, after);
    let [verdict, nanoseconds] = [0, 0];
    this.#call(COMMAND.testRun, "run a program", (answer) => {
      verdict = answer.getInt32(4, LITTLE_ENDIAN);
      nanoseconds = answer.getUint32(36, LITTLE_ENDIAN);
    });
    return { verdict, nanoseconds, context: after };
  }

  close(descriptor: number): void {
    this.#libc.close(descriptor);
  }

  // bpf_attr of BPF_PROG_LOAD: TYPE(4) COUNT(4) INSNS(8) LICENSE(8) LOG_LEVEL(4) LOG_SIZE(4) LOG_BUF(8) VERSION(4) FLAGS(4) NAME(16)
  #load(program: Uint8Array, name: string, log: Uint8Array | null): number {
    this.#numbers(0, [SCHED_CLS, program.length / 8]);
    this.#lend(8, program);
    this.#lend(16, Buffer.from("GPL\0")); // bpf_redirect and its like ask for it
    if (log !== null) {
      this.#numbers(24, [1, log.length]);
      this.#lend(32, log);
    }
    Buffer.from(name.slice(0, 15)).copy(new Uint8Array(this.#attribute.buffer), 48);
    return this.#call(COMMAND.loadProgram, "load the classifier");
  }

  #numbers(at: number, values: readonly number[]): void {
    for (const [index, value] of values.entries())
      this.#attribute.setUint32(at + index * 4, value, LITTLE_ENDIAN);
  }

  #lend(at: number, bytes: Uint8Array): void {
    this.#lent.push(bytes);
    this.#attribute.setBigUint64(at, this.#ffi.getRawPointer(bytes), LITTLE_ENDIAN);
  }

  #call(command: number, what: string, read?: (answer: DataView) => void): number {
    const bytes = new Uint8Array(this.#attribute.buffer);
    if (this.#number < 0n) throw new Error(`${what}: bpf(2) has no number known for ${process.arch}`);
    const result = this.#library.functions.syscall(this.#number, command, bytes, ATTRIBUTE_BYTES);
    const errno = int32At(this.#errno, 0);
    if (result >= 0) read?.(this.#attribute);
    bytes.fill(0); // fields that a command does not know must be zero
    this.#lent = [];
    if (result < 0) throw new SystemError(what, errno);
    return result;
  }
}
