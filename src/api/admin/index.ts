/** The API that manages users: `/api/admin/…`, with a secret of its own. */
import type { z } from "zod";
import { isInClear, type Transport } from "#api/app-env.ts";
import { notFound } from "#api/errors.ts";
import { DONE, route, type Answer, type Route } from "#api/route.ts";
import type { AccessControl, Caller } from "#core/access.ts";
import type { Control } from "#core/control.ts";
import type { UserAdmin, UsersControl } from "#core/users.ts";
import {
  inboundList,
  overview,
  protocolList,
  subscription,
  userDetail,
  userHistory,
  userList,
  userUsage,
} from "./answers.ts";
import { noteOfReset, noteOfUser } from "./audit-notes.ts";
import { fleetRoutes } from "./fleet.ts";
import { adminGuard } from "./guard.ts";
import { ofListener } from "./one-listener.ts";
import { overviewJson, protocolsJson } from "./overview.ts";
import { nodesOfUsers, onlineOf, usageOfFleet } from "./by-node.ts";
import { labelled } from "./remarks.ts";
import {
  byQuery,
  changeOf,
  createBody,
  detailJson,
  historyJson,
  historyQuery,
  inboundJson,
  revisionBody,
  revisionQuery,
  updateBody,
  usageJson,
  userJson,
  userQuery,
  usersQuery,
} from "./shapes.ts";

/** Of what changes the users of a listener. */
const faults = {
  500: "It could not be written, or the listener refused it; everything is as before",
  503: "Too many changes of this listener wait already; nothing was done",
};

const ok = (description: string, schema: z.ZodType): Answer => ({ status: 200, description, schema });

/** The users that a caller manages. */
type AdminOf = (call: { readonly caller: Caller }) => UserAdmin;

/** None on a plain TCP port that other machines reach: there the secret would travel in the clear. */
export function adminRoutes(
  users: UsersControl,
  control: Control,
  transport: Transport,
  access: AccessControl | null = null,
): readonly Route[] {
  if (isInClear(transport)) return [];
  const guard = adminGuard(users, access, transport);
  const admin: AdminOf = ({ caller }) => {
    if (users.admin === null) throw notFound(); // went while the body arrived
    const listener = caller.token?.listener ?? null;
    return listener === null ? users.admin : ofListener(users.admin, listener);
  };
  const routes = [
    ...readRoutes(admin, control),
    ...listRoutes(admin),
    ...userRoutes(admin),
    ...actionRoutes(admin),
    ...fleetRoutes(admin),
  ];
  return routes.map((each) => ({ ...(each.method === "GET" ? refreshed(each, users) : each), guard }));
}

/** Shows what other nodes of a fleet have done by now. */
function refreshed(each: Route, users: UsersControl): Route {
  return {
    ...each,
    async handle(call) {
      const fleet = users.admin?.fleet ?? null;
      if (fleet !== null) await fleet.freshen();
      return each.handle(call);
    },
  };
}

function readRoutes(admin: AdminOf, control: Control): readonly Route[] {
  const overviews = ["overview", "status"].map((name) =>
    route({
      method: "GET",
      scope: "users",
      path: `/api/admin/${name}`,
      summary: "Version, uptime, traffic and numbers of managed users",
      query: byQuery,
      answer: ok("The overview", overview),
      handle: (call) => overviewJson(control, admin(call), call.query.by),
    }),
  );
  const inbounds = ["inbounds", "listeners"].map((name) =>
    route({
      method: "GET",
      scope: "users",
      path: `/api/admin/${name}`,
      summary: "The managed listeners with their revisions",
      answer: ok("The same list under `inbounds` and `listeners`", inboundList),
      handle(call) {
        const list = admin(call).inbounds().map(inboundJson);
        return { inbounds: list, listeners: list };
      },
    }),
  );
  const protocols = route({
    method: "GET",
    scope: "users",
    path: "/api/admin/protocols",
    summary: "Listener types whose users can be managed",
    answer: ok("The types", protocolList),
    handle: (call) => protocolsJson(admin(call)),
  });
  return [...overviews, ...inbounds, protocols];
}

function listRoutes(admin: AdminOf): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "users",
      path: "/api/admin/users",
      summary: "All managed users, or those of one listener or with one label; without credentials",
      query: usersQuery,
      answer: ok("Users, and all managed listeners", userList),
      async handle(call) {
        const own = admin(call);
        const users = labelled(own.users(call.query.inbound || null), call.query.label);
        const nodesOf = await nodesOfUsers(own, call.query.by, null);
        const shown = users.map((user) => ({ ...userJson(user), ...nodesOf(user.id) }));
        return { users: shown, inbounds: own.inbounds().map(inboundJson) };
      },
    }),
    route({
      method: "POST",
      scope: "users",
      path: "/api/admin/users",
      summary: "Create a user; a credential that is not given is made up",
      body: createBody,
      answer: { ...ok("The user, with credential and subscription link", userDetail), status: 201 },
      faults,
      async handle(call) {
        const { body } = call;
        const draft = { ...changeOf(body), inbound: body.inbound ?? "", name: body.name ?? "" };
        const made = await admin(call).create(draft);
        call.note(noteOfUser("user.create", null, made));
        return detailJson(made);
      },
    }),
  ];
}

function userRoutes(admin: AdminOf): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "users",
      path: "/api/admin/users/:id",
      summary: "One user with credential and subscription link",
      answer: ok("The user", userDetail),
      query: userQuery,
      async handle(call) {
        const own = admin(call);
        const { by, online: isWanted } = call.query;
        const user = own.user(call.params.id);
        if (user === null) throw notFound();
        const online = await onlineOf(own.fleet, user, by);
        const nodesOf = await nodesOfUsers(own, by, user.id);
        return { ...detailJson(user, isWanted === "true", online), ...nodesOf(user.id) };
      },
    }),
    route({
      method: "GET",
      scope: "users",
      path: "/api/admin/users/:id/usage",
      summary: "What one user moved in the last day, in steps: since weir runs; of a fleet in hours",
      answer: ok("Steps in which something was moved", userUsage),
      query: byQuery,
      async handle(call) {
        const own = admin(call);
        const usage = own.usage(call.params.id);
        if (usage === null) throw notFound();
        const all = await usageOfFleet(own.fleet, call.params.id);
        if (all === null || call.query.by === undefined) return usageJson(all?.whole ?? usage);
        const parts = [...all.nodes].map(([node, own]) => ({ node, steps: usageJson(own).steps }));
        return { ...usageJson(all.whole), nodes: parts };
      },
    }),
    route({
      method: "GET",
      scope: "users",
      path: "/api/admin/users/:id/history",
      summary: "What one user moved, by day and for the last two days by hour; also of a user removed lately",
      answer: ok("Days and hours in which something was moved", userHistory),
      query: historyQuery,
      handle(call) {
        const history = admin(call).history(call.params.id, call.query.days);
        if (history === null) throw notFound();
        return historyJson(history);
      },
    }),
    route({
      method: "PUT",
      scope: "users",
      path: "/api/admin/users/:id",
      summary: "Change what is named; the rest stays",
      body: updateBody,
      answer: ok("The user", userDetail),
      faults,
      async handle(call) {
        const { id } = call.params;
        const before = admin(call).user(id);
        const after = await admin(call).update(id, changeOf(call.body));
        call.note(noteOfUser("user.update", before, after));
        return detailJson(after);
      },
    }),
    route({
      method: "DELETE",
      scope: "users",
      path: "/api/admin/users/:id",
      summary: "Delete a user; live sessions end",
      query: revisionQuery,
      answer: DONE,
      faults,
      async handle(call) {
        const { id } = call.params;
        const before = admin(call).user(id);
        await admin(call).remove(id, call.query.revision);
        call.note(noteOfUser("user.delete", before, null));
      },
    }),
  ];
}

function actionRoutes(admin: AdminOf): readonly Route[] {
  return [
    route({
      method: "POST",
      scope: "users",
      path: "/api/admin/users/:id/reset-traffic",
      summary: "Set the counters to zero",
      body: revisionBody,
      answer: ok("The user", userDetail),
      faults,
      async handle(call) {
        const { id } = call.params;
        const before = admin(call).user(id);
        const after = await admin(call).resetTraffic(id, call.body.revision);
        call.note(noteOfReset(before, after));
        return detailJson(after);
      },
    }),
    route({
      method: "POST",
      scope: "users",
      path: "/api/admin/users/:id/rotate-subscription",
      summary: "A new subscription link; the old one is dead at once",
      body: revisionBody,
      answer: ok("The listener's new revision and the link", subscription),
      faults,
      async handle(call) {
        const { id } = call.params;
        const user = admin(call).user(id);
        const { revision, subscriptionUrl } = await admin(call).rotateSubscription(id, call.body.revision);
        call.note(noteOfUser("user.rotate-subscription", user, user));
        return { revision, subscription_url: subscriptionUrl };
      },
    }),
  ];
}
