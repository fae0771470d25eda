/** Who may do what through the Controller, in words that the API, the store of tokens and the audit log share. */

/**
 * What a token may be allowed. `read` sees what runs, without secrets; `operate` chooses, tests, closes and refreshes,
 * and reads; `users` manages users; `admin` does all of that, and changes configuration, policies and the program.
 */
export const SCOPES = ["read", "operate", "users", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** Of a route: `open` asks for no credential, `owner` for one of the two secrets; no token has that scope. */
export type RouteScope = "open" | Scope | "owner";

const INCLUDED: Readonly<Record<Scope, readonly RouteScope[]>> = {
  read: ["read"],
  operate: ["operate", "read"],
  users: ["users"],
  admin: ["admin", "users", "operate", "read"],
};

/** Whether a token with these scopes opens a route. */
export function allows(scopes: readonly Scope[], wanted: RouteScope): boolean {
  return wanted === "open" || scopes.some((scope) => INCLUDED[scope].includes(wanted));
}
