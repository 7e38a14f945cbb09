package shell

const wNoWait = 0x20
