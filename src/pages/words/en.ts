/** THE texts of the pages that the program writes itself: the portal and the subscription. */
export const en = {
  "page.language": "Language",

  "portal.over": "Traffic quota reached",
  "portal.own": "Your traffic",
  "portal.used": "Used in the window",
  "portal.left": "Left",
  "portal.rate": "Speed now",
  "portal.limit": "Speed limit",
  "portal.upload": "upload",
  "portal.download": "download",
  "portal.both": "upload {upload}, download {download}",
  "portal.unlimited": "unlimited",
  "portal.plot": "The last 24 hours",
  "portal.lifts": "The limit lifts by itself when the window frees.",
  "portal.liftsAt":
    "The limit lifts by itself when the window frees (if nothing more is used, about {time}).",
  "portal.none": "No policy is about this device.",
  "portal.denied": "This link is not valid or has expired.",
  "portal.gone": "The quota is no longer used up. Load the page that you wanted again.",

  "subscription.state": "State",
  "subscription.active": "active",
  "subscription.disabled": "disabled",
  "subscription.expired": "expired",
  "subscription.limited": "quota used up",
  "subscription.used": "Used",
  "subscription.usedText": "{bytes} (upload {upload})",
  "subscription.left": "Left",
  "subscription.leftText": "{left} of {total}",
  "subscription.until": "Until",
  "subscription.import": "Import into",
  "subscription.importText":
    "Open this page on the device with the client, and press its name. Or scan the code, or copy the address into the client.",
  "subscription.subscription": "Subscription",
  "subscription.node": "Node",
} as const;
