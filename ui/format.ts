/** With brackets around an IPv6 address. */
export const hostPort = (host: string, port: string): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
