// kinesis-local listens on 0.0.0.0 and has no setting for it. Loaded before it by `node --require`,
// this makes every server of the process listen on 127.0.0.1 alone.
"use strict";

const net = require("node:net");

const HOST = "127.0.0.1";
const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function listenOnLoopback(...args) {
  const [first] = args;
  if (typeof first === "object" && first !== null) {
    return listen.call(this, { ...first, host: HOST }, ...args.slice(1));
  }
  const rest = typeof args[1] === "string" ? args.slice(2) : args.slice(1);
  return listen.call(this, first, HOST, ...rest);
};
