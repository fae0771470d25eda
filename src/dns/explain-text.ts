import type { Explanation } from "./dns.ts";

/** The way of a name through the engine, a sentence a line. */
export function explanationLines({
  name,
  hosts,
  faked,
  by,
  servers,
  cached,
}: Explanation): readonly string[] {
  const lines: string[] = [];
  if (hosts !== null)
    lines.push(
      `hosts: ${hosts.addresses === null ? `stands for ${hosts.name}` : hosts.addresses.join(", ")}`,
    );
  if (hosts === null || hosts.addresses === null) {
    lines.push(faked ? "clients are given a fake address" : "clients are given the real answer");
    lines.push(`${by} chooses ${servers.join(", ")}${cached ? "; the answer is in the cache" : ""}`);
  }
  return lines.map((line) => `DNS ${name}: ${line}`);
}
