export function register(api) {}
