package shell

const wNoWait = 0x01000000
