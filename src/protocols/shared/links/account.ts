/** Names and passwords of the plain proxy protocols, in links and as what clients of a listener need. */
import type { Link, LinkNode, ListenerContext } from "#core/share-link.ts";
import { decode, decodeBase64 } from "./grammar.ts";
import { clientNodes, usersOf } from "./listener.ts";
import { textOf, fieldsOf } from "./stream.ts";

/** `user:password`, or base64 of that. */
export function accountOf({ rawUser, user }: Link): LinkNode {
  if (user === "") return {};
  const pair = user.includes(":") ? rawUser : (decodeBase64(user) ?? user);
  const colon = pair.indexOf(":");
  const plain = user.includes(":") ? decode : (text: string) => text;
  return colon < 0
    ? { username: plain(pair) }
    : { username: plain(pair.slice(0, colon)), password: plain(pair.slice(colon + 1)) };
}

/** In the form that links have it; empty where there is none. */
export function accountText(node: LinkNode): string {
  const [name, password] = [textOf(node["username"]) ?? "", textOf(node["password"]) ?? ""];
  return name === "" && password === "" ? "" : `${encodeURIComponent(name)}:${encodeURIComponent(password)}`;
}

/** One node an account, and one without where the listener is open. Without users of its own it has the global ones. */
export function accountNodes(type: string, options: object, listener: ListenerContext): readonly LinkNode[] {
  const { users } = fieldsOf(options);
  const accounts = usersOf(users === undefined ? listener.accounts : users);
  const clients =
    accounts.length === 0
      ? [{ user: null, type }]
      : accounts.map(({ user, password }) => ({ user, type, username: user, password }));
  return clientNodes(options, listener, clients);
}
