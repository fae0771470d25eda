/** What the program needs of this folder once a Controller is asked for: it is loaded then, and not before. */
export { adminRoutes } from "./admin/index.ts";
export { journalRoutes } from "./journal/index.ts";
export { openController } from "./open-controller.ts";
export { subscriptionRoutes } from "./subscription.ts";
