/** How many descriptors this process may have open (RLIMIT_NOFILE). */
import { readFileSync } from "node:fs";

export interface OpenFiles {
  /** Infinity: as many as the system has. */
  readonly soft: number;
  /** As the system writes it. */
  readonly hard: string;
}

/** Null: this system does not say. */
export function mostOpenFiles(): OpenFiles | null {
  const [, soft = "", hard = ""] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limitsText()) ?? [];
  if (soft === "") return null;
  return { soft: soft === "unlimited" ? Infinity : Number(soft), hard };
}

function limitsText(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return ""; // not Linux
  }
}
