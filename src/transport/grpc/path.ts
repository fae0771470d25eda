/**
 * `/<service>/Tun`. A service name that begins with `/` is a full path: its last segment names the stream, or
 * `Tun|TunMulti` both streams.
 */
export interface GunPaths {
  readonly single: string;
  readonly multi: string;
}

export function gunPaths(serviceName: string): GunPaths {
  if (!serviceName.startsWith("/")) {
    const service = encodeURIComponent(serviceName === "" ? "GunService" : serviceName);
    return { single: `/${service}/Tun`, multi: `/${service}/TunMulti` };
  }
  const at = serviceName.lastIndexOf("/");
  const service = serviceName.slice(0, at).split("/").map(encodeURIComponent).join("/");
  const [single = "Tun", multi = `${single}`] = serviceName.slice(at + 1).split("|");
  return {
    single: `${service}/${encodeURIComponent(single)}`,
    multi: `${service}/${encodeURIComponent(multi)}`,
  };
}
