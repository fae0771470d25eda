import { AuthError, ConfigError, DialError, ProtocolError } from "#core/errors.ts";
import { Chance } from "./chance.ts";
import type { Target } from "./kinds.ts";
import { hostile, pieces } from "./mutate.ts";

/** No single input may cost more. */
const MOST_CPU_MS = 20;
/** Above what was there before, whatever came. */
const MOST_GROWTH_BYTES = 256 << 20;
const CHECK_EVERY = 4096;

export interface Outcome {
  readonly executions: number;
  readonly refused: number;
  readonly slowestMs: number;
  readonly growthBytes: number;
}

/** A decoder may only say that the peer, or what it was asked to read, is at fault. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ProtocolError ||
  error instanceof DialError ||
  error instanceof AuthError ||
  error instanceof ConfigError;

/**
 * Gives `executions` inputs to the targets in turn. Throws for the first that crashes a decoder, takes longer than 20 ms
 * of CPU or lets memory grow; the message holds the input and how it was cut.
 */
export async function drive(targets: readonly Target[], executions: number, seed: number): Promise<Outcome> {
  const chance = new Chance(seed);
  const before = process.memoryUsage().rss;
  let [refused, slowestMs, growthBytes] = [0, 0, 0];
  for (let done = 0; done < executions; done++) {
    const target = targets[done % targets.length] as Target;
    const input = pieces(hostile(target.seeds, chance), chance);
    const startedMs = performance.now();
    if (refuses(target, input)) refused++;
    if (performance.now() - startedMs > MOST_CPU_MS) slowestMs = Math.max(slowestMs, cpuOf(target, input));
    if (done % CHECK_EVERY > 0) continue;
    await new Promise(setImmediate); // streams close, timers go
    growthBytes = Math.max(growthBytes, process.memoryUsage().rss - before);
    if (growthBytes > MOST_GROWTH_BYTES)
      throw new Error(`memory grew by ${growthBytes} bytes after ${done} inputs`);
  }
  return { executions, refused, slowestMs, growthBytes };
}

function refuses(target: Target, input: readonly Buffer[]): boolean {
  try {
    target.run(input);
    return false;
  } catch (error) {
    if (isRefusal(error)) return true;
    throw new Error(`${target.name}: ${String(error)}; input ${shown(input)}`, { cause: error });
  }
}

/** The least of three: what a busy machine adds does not count. */
function cpuOf(target: Target, input: readonly Buffer[]): number {
  const times = [0, 1, 2].map(() => {
    const { user, system } = process.cpuUsage();
    refuses(target, input);
    const used = process.cpuUsage({ user, system });
    return (used.user + used.system) / 1000;
  });
  const ms = Math.min(...times);
  if (ms > MOST_CPU_MS) throw new Error(`${target.name}: ${ms} ms for one input: ${shown(input)}`);
  return ms;
}

const shown = (input: readonly Buffer[]): string => input.map((piece) => piece.toString("hex")).join("|");
