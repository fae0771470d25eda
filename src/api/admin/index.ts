/** The API that manages users: `/api/admin/…`, with a secret of its own. */
import type { z } from "zod";
import type { Transport } from "#api/app-env.ts";
import { notFound } from "#api/errors.ts";
import { DONE, route, type Answer, type Route } from "#api/route.ts";
import type { Control } from "#core/control.ts";
import type { UserAdmin, UsersControl } from "#core/users.ts";
import {
  inboundList,
  overview,
  protocolList,
  subscription,
  userDetail,
  userList,
  userUsage,
} from "./answers.ts";
import { adminGuard } from "./guard.ts";
import { overviewJson, protocolsJson } from "./overview.ts";
import {
  changeOf,
  createBody,
  detailJson,
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

/** None on a plain TCP port that other machines reach: there the secret would travel in the clear. */
export function adminRoutes(users: UsersControl, control: Control, transport: Transport): readonly Route[] {
  if (transport.kind === "http" && !transport.isLocal) return [];
  const guard = adminGuard(users, transport);
  const admin = (): UserAdmin => {
    if (users.admin === null) throw notFound(); // went while the body arrived
    return users.admin;
  };
  const routes = [
    ...readRoutes(admin, control),
    ...listRoutes(admin),
    ...userRoutes(admin),
    ...actionRoutes(admin),
  ];
  return routes.map((each) => ({ ...each, guard }));
}

function readRoutes(admin: () => UserAdmin, control: Control): readonly Route[] {
  const overviews = ["overview", "status"].map((name) =>
    route({
      method: "GET",
      scope: "users",
      path: `/api/admin/${name}`,
      summary: "Version, uptime, traffic and numbers of managed users",
      answer: ok("The overview", overview),
      handle: () => overviewJson(control, admin()),
    }),
  );
  const inbounds = ["inbounds", "listeners"].map((name) =>
    route({
      method: "GET",
      scope: "users",
      path: `/api/admin/${name}`,
      summary: "The managed listeners with their revisions",
      answer: ok("The same list under `inbounds` and `listeners`", inboundList),
      handle() {
        const list = admin().inbounds().map(inboundJson);
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
    handle: () => protocolsJson(admin()),
  });
  return [...overviews, ...inbounds, protocols];
}

function listRoutes(admin: () => UserAdmin): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "users",
      path: "/api/admin/users",
      summary: "All managed users, or those of one listener; without credentials",
      query: usersQuery,
      answer: ok("Users, and all managed listeners", userList),
      handle({ query }) {
        const users = admin().users(query.inbound || null);
        return { users: users.map(userJson), inbounds: admin().inbounds().map(inboundJson) };
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
      async handle({ body }) {
        const draft = { ...changeOf(body), inbound: body.inbound ?? "", name: body.name ?? "" };
        return detailJson(await admin().create(draft));
      },
    }),
  ];
}

function userRoutes(admin: () => UserAdmin): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "users",
      path: "/api/admin/users/:id",
      summary: "One user with credential and subscription link",
      answer: ok("The user", userDetail),
      query: userQuery,
      handle({ params, query }) {
        const user = admin().user(params.id);
        if (user === null) throw notFound();
        return detailJson(user, query.online === "true");
      },
    }),
    route({
      method: "GET",
      scope: "users",
      path: "/api/admin/users/:id/usage",
      summary: "What one user moved in the last day, in steps, since weir runs",
      answer: ok("Steps in which something was moved", userUsage),
      handle({ params }) {
        const usage = admin().usage(params.id);
        if (usage === null) throw notFound();
        return usageJson(usage);
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
      handle: async ({ params, body }) => detailJson(await admin().update(params.id, changeOf(body))),
    }),
    route({
      method: "DELETE",
      scope: "users",
      path: "/api/admin/users/:id",
      summary: "Delete a user; live sessions end",
      query: revisionQuery,
      answer: DONE,
      faults,
      handle: ({ params, query }) => admin().remove(params.id, query.revision),
    }),
  ];
}

function actionRoutes(admin: () => UserAdmin): readonly Route[] {
  return [
    route({
      method: "POST",
      scope: "users",
      path: "/api/admin/users/:id/reset-traffic",
      summary: "Set the counters to zero",
      body: revisionBody,
      answer: ok("The user", userDetail),
      faults,
      handle: async ({ params, body }) => detailJson(await admin().resetTraffic(params.id, body.revision)),
    }),
    route({
      method: "POST",
      scope: "users",
      path: "/api/admin/users/:id/rotate-subscription",
      summary: "A new subscription link; the old one is dead at once",
      body: revisionBody,
      answer: ok("The listener's new revision and the link", subscription),
      faults,
      async handle({ params, body }) {
        const { revision, subscriptionUrl } = await admin().rotateSubscription(params.id, body.revision);
        return { revision, subscription_url: subscriptionUrl };
      },
    }),
  ];
}
