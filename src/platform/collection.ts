/**
 * A collection of the whole heap in small steps, as V8 makes one by itself where an embedder says that memory is getting
 * short (v8-isolate.h, `MemoryPressureNotification`): pages that it empties go back to the system at once, instead of with
 * the next collection, which an idle program may not need for hours.
 */
import { openFfi } from "./ffi.ts";

/** As the compiler of the runtime names them (Itanium C++ ABI §5.1); the runtime shows them to add-ons. */
const CURRENT = "_ZN2v87Isolate10GetCurrentEv";
const PRESSURE = "_ZN2v87Isolate26MemoryPressureNotificationENS_19MemoryPressureLevelE";
/** `MemoryPressureLevel`: collected in steps that run between other tasks of the thread. */
const MODERATE = 1;
/** The same: all in one piece, before the call returns. */
const CRITICAL = 2;

const SIGNATURES = {
  [CURRENT]: { arguments: [], return: "u64" },
  [PRESSURE]: { arguments: ["u64", "i32"], return: "void" },
} as const;

/** Begins one of the thread that calls it, unless one is under way. Null where the runtime does not show how. */
export function openCollection(): (() => void) | null {
  return openAt(MODERATE);
}

/** The same for a thread that does not return to its event loop, where steps would never run: it stands still meanwhile. */
export function openWholeCollection(): (() => void) | null {
  return openAt(CRITICAL);
}

function openAt(level: number): (() => void) | null {
  const ffi = openFfi();
  if (ffi === null || process.platform === "win32") return null;
  try {
    const { functions } = ffi.dlopen(null, SIGNATURES);
    return () => functions[PRESSURE](functions[CURRENT](), level);
  } catch {
    return null; // another runtime
  }
}
