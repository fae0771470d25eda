/** How long a large file takes from text to the frozen value. */
import { parseConfig } from "#config/parse.ts";
import { REGISTRIES } from "#cli/parse-env.ts";

export const NAME = "config";

const ROUNDS = 5;
const env = { registries: REGISTRIES, files: { resolve: (path: string) => path }, userAgent: "bench" };

/** Proxies in flow style, as subscriptions have them. */
function proxies(count: number): string {
  const lines = Array.from(
    { length: count },
    (_, at) =>
      `  - { name: node ${at}, type: socks5, server: 192.0.2.${at % 250}, port: ${1000 + (at % 60_000)}, username: u${at}, password: p${at} }`,
  );
  return `proxies:\n${lines.join("\n")}\n`;
}

/** 10,000 lines: proxies, groups of fifty, and rules. */
function wholeFile(): string {
  const groups = Array.from({ length: 40 }, (_, at) => {
    const members = Array.from({ length: 50 }, (_unused, member) => `      - node ${at * 50 + member}`);
    return `  - name: group ${at}\n    type: select\n    proxies:\n${members.join("\n")}`;
  });
  const rules = Array.from({ length: 5800 }, (_, at) =>
    at % 3 === 0
      ? `  - IP-CIDR,10.${at % 256}.${at >> 8}.0/24,group ${at % 40},no-resolve`
      : `  - DOMAIN-SUFFIX,name${at}.example,group ${at % 40}`,
  );
  return `mixed-port: 7890\n${proxies(2000)}proxy-groups:\n${groups.join("\n")}\nrules:\n${rules.join("\n")}\n  - MATCH,DIRECT\n`;
}

export async function run(out: (line: string) => void): Promise<void> {
  for (const [what, text] of [
    ["proxies, groups and rules", wholeFile()],
    ["10,000 proxies", proxies(10_000)],
  ] as const) {
    const lines = text.split("\n").length - 1;
    const wall: number[] = [];
    const cpu: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const startedMs = performance.now();
      const before = process.cpuUsage();
      const { errors } = parseConfig(text, env);
      if (errors !== undefined) throw new Error(errors[0]?.message);
      const used = process.cpuUsage(before);
      wall.push(performance.now() - startedMs);
      cpu.push((used.user + used.system) / 1000);
    }
    out(
      `${what}: ${lines} lines in ${median(wall)} ms (first ${Math.round(wall[0] as number)} ms), CPU ${median(cpu)} ms`,
    );
  }
}

function median(values: readonly number[]): number {
  return Math.round([...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number);
}
