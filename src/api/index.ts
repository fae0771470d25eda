/** What answers requests, with the HTTP framework and all schemas: loaded with the first request, and not before. */
export { adminRoutes } from "./admin/index.ts";
export { Application } from "./application.ts";
export { journalRoutes } from "./journal/index.ts";
export { subscriptionRoutes } from "./subscription.ts";
