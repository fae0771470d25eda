/** How programs of other systems are told to use the proxy. */
import type { Configs } from "#ui/api/types.ts";
import { hostPort } from "#ui/format.ts";

export interface ProxyAddress {
  readonly http: string | null;
  readonly socks: string | null;
  /** Other machines reach it. */
  readonly isShared: boolean;
}

/** `pageHost`: as the browser reaches this machine. Null: no such port is open. */
export function proxyAddress(configs: Configs, pageHost: string): ProxyAddress | null {
  const mixed = configs["mixed-port"];
  const [http, socks] = [configs.port || mixed, configs["socks-port"] || mixed];
  if (http === 0 && socks === 0) return null;
  const isShared = configs["allow-lan"];
  const host = isShared ? pageHost.replace(/^\[(.*)\]$/, "$1") : "127.0.0.1";
  const at = (port: number): string | null => (port === 0 ? null : hostPort(host, String(port)));
  return { http: at(http), socks: at(socks), isShared };
}

export const WAYS = [
  ["address", "use.address"],
  ["shell", "use.shell"],
  ["powershell", "use.powershell"],
  ["git", "use.git"],
] as const;
export type Way = (typeof WAYS)[number][0];

/** To be copied into the program or the shell. */
export function proxyText({ http, socks }: ProxyAddress, way: Way): string {
  const any = http === null ? `socks5h://${socks}` : `http://${http}`;
  const all = socks === null ? any : `socks5h://${socks}`;
  if (way === "shell") return `export https_proxy=${any} http_proxy=${any} all_proxy=${all}`;
  if (way === "powershell") return `$env:HTTPS_PROXY = $env:HTTP_PROXY = "${any}"; $env:ALL_PROXY = "${all}"`;
  if (way === "git") return `git config --global http.proxy ${any}`;
  return http ?? socks ?? "";
}
