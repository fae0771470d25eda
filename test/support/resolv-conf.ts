/** The system's name servers as a file says that the test writes; each answers everything, and the asked ones are kept. */
import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSystemUpstream } from "#dns/upstream/system.ts";

type Env = Parameters<typeof openSystemUpstream>[0];

export interface SystemServers extends AsyncDisposable {
  readonly upstream: ReturnType<typeof openSystemUpstream>;
  readonly asked: Set<string>;
  /** `atUnixSeconds`: when it was changed, as the file tells. */
  write(text: string, atUnixSeconds?: number): Promise<void>;
}

/** There is no file until one is written. */
export async function openSystemServers({
  ownAddresses = () => new Set<never>(),
  nowMs = () => 0,
}: Partial<Pick<Env, "ownAddresses" | "nowMs">> = {}): Promise<SystemServers> {
  const folder = await mkdtemp(join(tmpdir(), "dns-system-"));
  const resolvConf = join(folder, "resolv.conf");
  const asked = new Set<string>();
  const openServer: Env["openServer"] = ({ host }) => ({
    text: host,
    fixed: false,
    exchange: async (query: Uint8Array) => {
      asked.add(host);
      const answer = Buffer.from(query);
      answer[2] = 0x81;
      return answer;
    },
    reset() {},
    [Symbol.asyncDispose]: async () => {},
  });
  const upstream = openSystemUpstream({ resolvConf, ownAddresses, openServer, nowMs });
  return {
    upstream,
    asked,
    async write(text, atUnixSeconds) {
      await writeFile(resolvConf, text);
      if (atUnixSeconds !== undefined) await utimes(resolvConf, atUnixSeconds, atUnixSeconds);
    },
    async [Symbol.asyncDispose]() {
      await upstream[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
}
