/** CPU time of other processes, to the nanosecond: what /proc tells comes in ticks of 10 ms. */
import { ffiFor } from "#platform/ffi.ts";

const ffi = ffiFor("this test");
const library = ffi.dlopen(null, { clock_gettime: { arguments: ["i32", "pointer"], return: "i32" } });
// struct timespec: SECONDS(8) NANOSECONDS(8)
const time = new BigInt64Array(2);
const timeAddress = ffi.getRawPointer(time);

/** CPUCLOCK_SCHED; the clock of a process is made of it and of its id, as clock_getcpuclockid(3) does. */
const SCHEDULED = 2;

/** What a process that runs has used so far, all threads, those that have ended among them. */
export function cpuSecondsOf(pid: number): number {
  const clock = (~pid << 3) | SCHEDULED;
  if (library.functions.clock_gettime(clock, timeAddress) !== 0) throw new Error(`process ${pid} has ended`);
  const [seconds = 0n, nanoseconds = 0n] = time;
  return Number(seconds) + Number(nanoseconds) / 1e9;
}
